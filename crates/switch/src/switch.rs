//! Capabilities and limits of a switch.

use serde::Serialize;

/// What a switch can match and hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Switch {
    /// matches some bits of TCP and UDP ports. OpenFlow 1.3 has no mask for them (7.2.3.7)
    pub masked_ports: bool,
    /// matches the time to live. OpenFlow has no such field (Open vSwitch: `nw_ttl`)
    pub ttl: bool,
    /// divides a select group's traffic by fields that are named, not by ones that it chooses (Open vSwitch: `selection_method=hash`)
    pub select_by_fields: bool,
    /// rows that a table holds, at most
    pub rows: usize,
}

impl Switch {
    /// Open vSwitch, with its extensions.
    #[must_use]
    pub const fn open_vswitch() -> Self {
        Self {
            masked_ports: true,
            ttl: true,
            select_by_fields: true,
            rows: 1_000_000,
        }
    }

    /// What OpenFlow 1.3 names and no more.
    #[must_use]
    pub const fn standard() -> Self {
        Self {
            masked_ports: false,
            ttl: false,
            select_by_fields: false,
            rows: 1_000_000,
        }
    }
}
