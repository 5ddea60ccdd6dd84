//! How packets of a class see a path: where the headers are that their keys are read from.

use std::rc::Rc;

use millrace_model::expr::Arena;
use millrace_model::expr::sets::Set;
use millrace_object::program::Program;
use millrace_steer::{Field, Kind, Odd};

use crate::key::{Resolver, Whose, swapped};
use crate::offset::Offset;
use crate::packets::{
    Course, FRAGMENT, Family, Packets, TRANSPORTS, View, Way, kinds_of, transport_of, views,
};

/// A view of a path for one class of packets.
#[derive(Clone)]
pub(crate) struct Seen {
    pub packets: Packets,
    pub way: Way,
    pub view: Rc<View>,
    /// what the program sees as the port; none where the packets are of any
    pub number: Option<u64>,
}

impl Seen {
    /// The field that is 0 of ICMP echoes that count as UDP.
    pub fn zero(&self) -> Option<Field> {
        let other = match self.view.echo? {
            Field::SourcePort => Field::DestinationPort,
            _ => Field::SourcePort,
        };
        Some(match self.way {
            Way::Answer => swapped(other),
            Way::Plain | Way::Whole | Way::Rough => other,
        })
    }

    pub fn resolver(&self) -> Resolver<'_> {
        let whose = match self.way {
            Way::Answer => Whose::Answer,
            Way::Plain | Way::Whole | Way::Rough => Whose::Own,
        };
        Resolver::new(&self.view, whose)
    }
}

/// The ports that a path's packets can come from, of those that its guard leaves.
pub(super) fn ports(program: &Program, left: Option<&Set>) -> Vec<usize> {
    let count = program.ports.len();
    if count == 0 {
        return vec![0];
    }
    let is = |p: &usize| left.is_none_or(|s| s.values().any(|v| usize::from(v) == *p));
    (0..count).filter(is).collect()
}

/// Packets that take a path and are steered alike, if nobody looks for the identifiers of ICMP echoes.
pub(super) struct Class {
    kind: Kind,
    way: Way,
    view: View,
    /// where the header of ICMP begins of those among which echoes may be told apart
    icmp: Option<Offset>,
}

impl Class {
    /// Whether it depends on who looks for echoes.
    pub fn has_icmp(&self) -> bool {
        self.icmp.is_some()
    }
}

/// The classes as they are steered, by port.
pub(super) fn seen(
    arena: &mut Arena,
    classes: &[Class],
    (ports, named): (&[usize], bool),
    echoes: bool,
) -> Vec<Seen> {
    let mut out: Vec<Seen> = Vec::new();
    for class in classes {
        let header = class.icmp.as_ref().filter(|_| echoes);
        for (kind, view) in identified(arena, class.kind, &class.view, header) {
            let view = Rc::new(view);
            out.extend(ports.iter().map(|port| Seen {
                packets: Packets { port: *port, kind },
                way: class.way,
                view: view.clone(),
                number: named.then_some(*port as u64),
            }));
        }
    }
    out
}

/// The classes of packets that take a path.
pub(super) fn classes(arena: &mut Arena, path: &Course, odd: Option<Odd>) -> Vec<Class> {
    let mut out: Vec<Class> = Vec::new();
    for view in views(arena, path) {
        let plain = |(kind, view): (Kind, View)| Class {
            kind,
            way: Way::Plain,
            view,
            icmp: None,
        };
        if let Some(odd) = odd.filter(|o| o.every && view.family.is_some()) {
            out.extend(view.every(arena, path, odd).into_iter().map(plain));
            continue;
        }
        for (kind, way) in view.kinds(arena, path) {
            if let (Some(odd), Kind::NotIp) = (odd, kind) {
                match view.family {
                    Some(_) => {
                        out.extend(view.malformed(arena, odd).into_iter().map(plain));
                        continue;
                    }
                    None if view.is_any() => {
                        let all = Kind::ALL.into_iter().filter(|kind| kind.is_odd());
                        out.extend(all.map(|kind| plain((kind, view.clone()))));
                    }
                    None => {}
                }
            }
            // Rough are errors and first fragments, of which there may be either.
            if way != Way::Rough && !view.has(arena, kind, way) {
                continue;
            }
            let mut add = |arena: &Arena, kind: Kind, view: View, header: Option<Offset>| {
                let icmp = |h: &Offset| kind == Kind::Ipv4 && view.is_icmp(arena, h);
                out.push(Class {
                    kind,
                    way,
                    icmp: header.filter(icmp),
                    view,
                });
            };
            let short = matches!(kind, Kind::Ipv4 | Kind::Ipv6) && view.short(arena, path);
            if way == Way::Answer {
                for error in view.errors(arena, path) {
                    let header = error.transport(arena).map(|t| t.plus(8).behind_ipv4());
                    for (k, v) in carried(arena, &error) {
                        add(arena, k, v, header.clone());
                    }
                }
            } else {
                // A transport header that is cut short is none, whatever the protocol says.
                let own = match way {
                    Way::Plain | Way::Whole if short => vec![(kind, view.clone())],
                    _ => kinds(arena, &view, kind, &view.network()),
                };
                let looked = !short && matches!(way, Way::Plain | Way::Whole);
                for (k, v) in own {
                    let header = v.transport(arena).filter(|_| looked);
                    add(arena, k, v, header);
                }
            }
        }
    }
    out
}

/// The view with the protocol that the kind says, in the header that begins there.
pub(super) fn fixed(arena: &Arena, view: &View, kind: Kind, header: &Offset) -> View {
    match (view.family, transport_of(kind)) {
        (Some(family), Some(protocol)) if family == Family::V4 || !view.extended => {
            view.with(arena, &header.plus(family.protocol()), protocol)
        }
        _ => view.clone(),
    }
}

/// Kinds of the packet that an ICMP error carries, behind eight bytes of ICMP.
pub(super) fn carried(arena: &mut Arena, view: &View) -> Vec<(Kind, View)> {
    let Some(inner) = view.transport(arena).map(|t| t.plus(8)) else {
        return Vec::new();
    };
    let family = view.family.unwrap_or(Family::V4);
    let next = inner.plus(family.protocol());
    let mut out = Vec::new();
    let plain = match family {
        Family::V4 => Some(view.clone()),
        Family::V6 => view.extends(arena, &next, false),
    };
    if let Some(view) = plain {
        let set = view.set(arena, &next);
        for (i, kind) in kinds_of(family).into_iter().enumerate() {
            let admitted = match TRANSPORTS.get(i) {
                Some(number) => set.values().any(|v| v == *number),
                None if i == FRAGMENT => family == Family::V4 && view.later(arena, &inner),
                None => true,
            };
            if admitted {
                out.extend(kinds(arena, &view, kind, &inner));
            }
        }
    }
    // Where its transport header is, if extension headers come before, is not known.
    if family == Family::V6
        && let Some(mut view) = view.extends(arena, &next, true)
    {
        view.carries_extended = true;
        out.extend(kinds_of(family).map(|kind| (kind, view.clone())));
    }
    out.retain(|(_, view)| view.possible(arena));
    out
}

/// ICMP echoes apart, whose header begins there, as whoever looks for their identifiers takes them: for packets of UDP
/// (crates/steer, carried.rs). Without a header all stay together.
fn identified(
    arena: &mut Arena,
    kind: Kind,
    view: &View,
    header: Option<&Offset>,
) -> Vec<(Kind, View)> {
    let (Kind::Ipv4, Some(header)) = (kind, header) else {
        return vec![(kind, view.clone())];
    };
    let echoes = view.echoes(arena, header).into_iter();
    let mut out: Vec<_> = echoes.map(|echo| (Kind::Ipv4Udp, echo)).collect();
    out.extend(view.no_echoes(arena, header).map(|v| (kind, v)));
    out
}

/// The views of one kind: what has no ports is taken apart by protocol.
pub(super) fn kinds(
    arena: &mut Arena,
    view: &View,
    kind: Kind,
    header: &Offset,
) -> Vec<(Kind, View)> {
    let family = match kind {
        Kind::Ipv4 => Some(Family::V4),
        Kind::Ipv6 => Some(Family::V6),
        _ => None,
    };
    let views = match family.filter(|_| !view.extended) {
        Some(family) => view.without_ports(arena, &header.plus(family.protocol())),
        None => vec![fixed(arena, view, kind, header)],
    };
    views.into_iter().map(|v| (kind, v)).collect()
}
