//! `dpdk:DEVICE`: a device through a driver of DPDK: `dpdk:0000:3b:00.0` on the PCI bus, or a driver of
//! software with its arguments, `dpdk:net_af_packet0,iface=veth0`.
//!
//! The feature `dpdk` of the build turns it on; without it a port is refused with that reason. Packets lie
//! in DPDK's buffers (mbufs) from the device to the function and on to another DPDK device, without a copy.
//! DPDK has no way to wait for a packet, so a worker of such a port never sleeps.
//!
//! Options: `ring=N` (descriptors of each ring, default 512), `mtu=N` (of the device; buffers hold it),
//! those of RSS (`steer`, `nic`, `key`, `fields`, `table`, `symmetric`), `checksum=on|off` (finish checksums
//! that local senders left to the device; on for an interface of the kernel), `promisc=off`.

#[cfg(feature = "dpdk")]
mod device;
#[cfg(feature = "dpdk")]
mod eal;
#[cfg(feature = "dpdk")]
mod hub;
#[cfg(feature = "dpdk")]
mod open;
#[cfg(feature = "dpdk")]
mod queue;
#[cfg(feature = "dpdk")]
mod raw;
#[cfg(feature = "dpdk")]
mod tap;
#[cfg(all(test, feature = "dpdk"))]
mod tests;
#[cfg(feature = "dpdk")]
mod unfinished;
#[cfg(feature = "dpdk")]
mod way;
#[cfg_attr(
    not(feature = "dpdk"),
    allow(dead_code, reason = "used with the feature only")
)]
mod word;

#[cfg(feature = "dpdk")]
use open::open;

use super::Kind;
#[cfg(not(feature = "dpdk"))]
use super::{LiveOptions, LivePort, PortError};

/// Devices of DPDK.
pub const KIND: Kind = Kind {
    scheme: "dpdk",
    form: "dpdk:DEVICE",
    what: "a device through a driver of DPDK",
    input: None,
    output: None,
    live: Some(open),
    spelled,
};

/// Whether this build has such ports.
pub const BUILT: bool = cfg!(feature = "dpdk");

/// The devices themselves are known where the port is opened.
#[cfg(feature = "dpdk")]
fn spelled(rest: &str) -> Result<(), super::PortError> {
    super::Query::parse(KIND.scheme, rest).map(drop)
}

#[cfg(not(feature = "dpdk"))]
fn open(rest: &str, _options: &LiveOptions) -> Result<LivePort, PortError> {
    Err(missing(rest))
}

#[cfg(not(feature = "dpdk"))]
fn spelled(rest: &str) -> Result<(), PortError> {
    Err(missing(rest))
}

#[cfg(not(feature = "dpdk"))]
fn missing(rest: &str) -> PortError {
    PortError::Live {
        word: format!("{}:{rest}", KIND.scheme),
        what: "this build has no DPDK ports".into(),
        help: "build with `cargo build --release --features dpdk`, which needs the package libdpdk-dev"
            .into(),
    }
}

#[cfg(all(test, not(feature = "dpdk")))]
#[allow(clippy::unwrap_used)]
mod without {
    use std::sync::atomic::AtomicBool;

    use crate::port::{LiveOptions, live};

    #[test]
    fn a_build_without_dpdk_says_so() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let options = LiveOptions::of_one_queue(32, &STOP);
        let error = live("dpdk:net_ring0", &options).err().unwrap();
        assert!(error.to_string().contains("this build has no DPDK ports"));
        let built = super::BUILT;
        assert!(!built);
    }
}
