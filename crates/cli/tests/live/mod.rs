//! Live ports between network namespaces that the tests make and remove: TCP transfers, ping and
//! traceroute through functions, faults, and the same packets through every kind of port.
//!
//! Where namespaces cannot be made every test says `skipped: why` and passes.

mod ahead;
mod carried;
mod changes;
mod dpdk;
mod etcd;
mod faults;
mod hops;
mod idle;
mod in_kernel;
mod instance;
mod net;
mod nodes;
mod peers;
mod plain;
mod recipes;
mod same;
mod service;
mod tools;
mod transfer;
mod workers;
