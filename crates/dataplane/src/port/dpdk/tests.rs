//! Devices of software.
