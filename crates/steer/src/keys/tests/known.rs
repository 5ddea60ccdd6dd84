//! The constraints of the functions that everybody parallelises, by hand. The benchmark uses them too.

use millrace_steer::fields::{Field, Kind};
use millrace_steer::keys::{Bits, Case, Class, Constraint};

use Field::{
    DestinationAddress as DA, DestinationPort as DP, SourceAddress as SA, SourcePort as SP,
};

pub const TCP: Kind = Kind::Ipv4Tcp;

/// Classes and what is asked of them.
pub struct Known {
    pub classes: Vec<Class>,
    pub constraints: Vec<Constraint>,
}

/// Everything that headers of this kind have.
pub fn class(port: usize, kind: Kind) -> Class {
    let fields = Field::ALL.into_iter().filter(|f| f.bits(kind) > 0);
    Class {
        port,
        kind,
        hashed: Some(kind),
        fields: fields.collect(),
        spread: true,
    }
}

pub fn bits(field: Field) -> Bits {
    Bits::of(TCP, field)
}

pub fn keeps(kind: Kind, fields: &[Field]) -> Case {
    let both = |case: Case, field: &Field| case.both(Bits::of(kind, *field));
    fields.iter().fold(Case::all(), both)
}

/// Source and destination exchanged.
pub fn swapped(kind: Kind) -> Case {
    let pairs = [(SA, DA), (DA, SA), (SP, DP), (DP, SP)];
    let equal = |case: Case, (a, b)| case.equal(Bits::of(kind, a), Bits::of(kind, b));
    pairs.into_iter().fold(Case::all(), equal)
}

/// All that have keys, by name.
pub fn all() -> Vec<(&'static str, Known)> {
    let both = [TCP, Kind::Ipv6Tcp];
    vec![
        ("nop", nop()),
        ("policer", policer()),
        ("psd", psd()),
        ("cl", connection_limiter()),
        ("hhh", heavy_hitters()),
        ("nat", nat()),
        ("firewall", firewall(2, &[TCP])),
        ("firewall, four ports", firewall(4, &[TCP])),
        ("firewall, IPv4 and IPv6", firewall(2, &both)),
        ("firewall, first fragments", firewall_with_fragments()),
    ]
}

fn one(case: Case) -> Known {
    Known {
        classes: vec![class(0, TCP)],
        constraints: vec![Constraint::new(0, 0, case)],
    }
}

pub fn nop() -> Known {
    Known {
        classes: vec![class(0, TCP)],
        constraints: Vec::new(),
    }
}

pub fn policer() -> Known {
    one(keeps(TCP, &[DA]))
}

pub fn psd() -> Known {
    one(keeps(TCP, &[SA]))
}

pub fn connection_limiter() -> Known {
    one(keeps(TCP, &[SA, DA]))
}

pub fn heavy_hitters() -> Known {
    one(Case::all().both(bits(SA).prefix(8)))
}

/// Per source and per destination.
pub fn two_counters() -> Known {
    let mut known = one(keeps(TCP, &[SA]));
    known.constraints[0].cases.push(keeps(TCP, &[DA]).into());
    known
}

/// Pairs of ports, the inner ones even, the outer ones odd; all share the flows.
pub fn firewall(ports: usize, kinds: &[Kind]) -> Known {
    let mut known = Known {
        classes: Vec::new(),
        constraints: Vec::new(),
    };
    for kind in kinds {
        let first = known.classes.len();
        known
            .classes
            .extend((0..ports).map(|port| class(port, *kind)));
        for a in 0..ports {
            for b in a..ports {
                let case = if (a + b) % 2 == 0 {
                    keeps(*kind, &Field::ALL)
                } else {
                    swapped(*kind)
                };
                let constraint = Constraint::new(first + a, first + b, case);
                known.constraints.push(constraint);
            }
        }
    }
    known
}

/// By the external server's address and port: destination on the inside, source on the outside.
pub fn nat() -> Known {
    let crossed = Case::all()
        .equal(bits(DA), bits(SA))
        .equal(bits(DP), bits(SP));
    Known {
        classes: vec![class(0, TCP), class(1, TCP)],
        constraints: vec![
            Constraint::new(0, 0, keeps(TCP, &[DA, DP])),
            Constraint::new(0, 1, crossed),
            Constraint::new(1, 1, keeps(TCP, &[SA, SP])),
        ],
    }
}

/// The first fragment of a flow looks the flow up, ports and all, but is hashed by its addresses.
pub fn firewall_with_fragments() -> Known {
    let mut known = firewall(2, &[TCP]);
    let fragment = Kind::Ipv4Fragment;
    // What the NIC does not hash of a fragment: its ports.
    let port = |field| match field {
        SP => Bits::other(0, 16),
        _ => Bits::other(1, 16),
    };
    let straight = |fields: [(Field, Field); 2], ports: [(Field, Field); 2]| {
        let case = Case::all();
        let case = fields
            .iter()
            .fold(case, |c, (a, b)| c.equal(bits(*a), bits(*b)));
        ports
            .iter()
            .fold(case, |c, (a, b)| c.equal(port(*a), bits(*b)))
    };
    for fragments in 0..2 {
        let id = known.classes.len();
        known.classes.push(class(fragments, fragment));
        for whole in 0..2 {
            let case = if fragments == whole {
                straight([(SA, SA), (DA, DA)], [(SP, SP), (DP, DP)])
            } else {
                straight([(SA, DA), (DA, SA)], [(SP, DP), (DP, SP)])
            };
            known.constraints.push(Constraint::new(id, whole, case));
        }
    }
    known
}

/// One bucket for each destination, whatever the version of IP.
pub fn policer_of_both_versions() -> Known {
    let kinds = [TCP, Kind::Ipv6Tcp];
    let keep = |(id, kind)| Constraint::new(id, id, keeps(kind, &[DA]));
    Known {
        classes: kinds.iter().map(|kind| class(0, *kind)).collect(),
        constraints: (0..).zip(kinds).map(keep).collect(),
    }
}
