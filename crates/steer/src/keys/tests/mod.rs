mod attack;
mod complete;
mod hostile;
mod known;
mod spread;
mod table;
mod time;
mod witness;
