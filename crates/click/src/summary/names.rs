//! Names of ICMP types, and of the fields' aliases.

/// Types of ICMP messages (RFC 792, 950, 1256).
pub const ICMP_TYPES: [(&str, u8); 17] = [
    ("echo-reply", 0),
    ("unreachable", 3),
    ("sourcequench", 4),
    ("redirect", 5),
    ("echo", 8),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("timeexceeded", 11),
    ("parameterproblem", 12),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
    ("source-quench", 4),
    ("time-exceeded", 11),
];

/// The name of an ICMP type.
#[must_use]
pub fn icmp(number: u8) -> String {
    let known = ICMP_TYPES.iter().find(|t| t.1 == number);
    known.map_or_else(|| number.to_string(), |t| t.0.to_owned())
}

/// The field that an old name means.
#[must_use]
pub fn canonical(name: &str) -> &str {
    match name {
        "src" | "ip src" => "ip_src",
        "dst" | "ip dst" => "ip_dst",
        "proto" => "ip_proto",
        "len" | "ip len" => "ip_len",
        "paint" => "link",
        "ts" => "timestamp",
        "tcp_window" => "tcp_win",
        "ip_tot_len" => "ip_len",
        other => other,
    }
}

/// Letters of TCP flags, from the lowest bit.
pub const FLAGS: &[u8; 9] = b"FSRPAUEWN";
