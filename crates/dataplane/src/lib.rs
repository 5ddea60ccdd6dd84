//! Ports, bursts, timers and counters around an emitted module.
