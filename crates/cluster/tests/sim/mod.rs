//! Simulation of clusters under seeded faults: the state machine that runs against etcd, driven in simulated time.

mod schedules;
mod store;
mod world;
