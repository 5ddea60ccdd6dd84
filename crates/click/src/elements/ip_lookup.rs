//! `RadixIPLookup(ADDRESS/MASK [GATEWAY] OUTPUT, …)`: the route with the longest mask that holds the destination annotation says the
//! output, of two to one network the first; a gateway becomes the annotation. Without a route the packet is dropped. `LinearIPLookup`,
//! `StaticIPLookup`, `DirectIPLookup`, `RangeIPLookup`, `SortedIPLookup`: the same.
//!
//! Handlers: `table`, `lookup ADDRESS`; written `add`, `set`, `remove`, `ctrl` (lines of these three), `flush`.

use super::prelude::*;
use crate::names::Names;

/// The classes of this file.
pub const CLASSES: &[Class] = &[
    Class::new("RadixIPLookup", "1/-", "h/h", make),
    Class::new("LinearIPLookup", "1/-", "h/h", make),
    Class::new("StaticIPLookup", "1/-", "h/h", make),
    Class::new("DirectIPLookup", "1/-", "h/h", make),
    Class::new("RangeIPLookup", "1/-", "h/h", make),
    Class::new("SortedIPLookup", "1/-", "h/h", make),
    Class::new("LinuxIPLookup", "1/-", "h/h", make),
];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    let mut lookup = Lookup { routes: Vec::new() };
    for argument in args.all() {
        let route = Route::read(&argument, args.names)?;
        // The first of two routes to one network counts.
        let _ = lookup.add(route, false);
    }
    Ok(Box::new(lookup))
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Route {
    address: [u8; 4],
    mask: [u8; 4],
    gateway: Option<[u8; 4]>,
    output: usize,
}

impl Route {
    fn read(text: &str, names: &Names) -> Result<Self, String> {
        let words = crate::language::args::words(text);
        let (prefix, gateway, output) = match words.as_slice() {
            [prefix, output] => (prefix, None, output),
            [prefix, gateway, output] => (prefix, Some(gateway).filter(|g| *g != "-"), output),
            _ => {
                return Err(format!(
                    "bad route '{text}': write ADDRESS/MASK [GATEWAY] OUTPUT"
                ));
            }
        };
        let (address, mask) =
            crate::arguments::prefix(prefix, names).ok_or(format!("bad network '{prefix}'"))?;
        let gateway = match gateway {
            None => None,
            Some(text) => {
                Some(crate::arguments::ip(text, names).ok_or(format!("bad gateway '{text}'"))?)
            }
        };
        Ok(Self {
            address: std::array::from_fn(|i| address[i] & mask[i]),
            mask,
            gateway: gateway.filter(|g| *g != [0; 4]),
            output: output
                .parse()
                .map_err(|_| format!("bad output '{output}'"))?,
        })
    }

    fn holds(&self, address: [u8; 4]) -> bool {
        (0..4).all(|i| address[i] & self.mask[i] == self.address[i])
    }

    fn show(&self) -> String {
        let bits = u32::from_be_bytes(self.mask).count_ones();
        let gateway = self.gateway.map_or("-".into(), crate::arguments::dots);
        let prefix = format!("{}/{bits}", crate::arguments::dots(self.address));
        format!("{prefix:<24}{gateway:<16}{}", self.output)
    }

    fn short(&self) -> String {
        let bits = u32::from_be_bytes(self.mask).count_ones();
        let gateway = self
            .gateway
            .map_or(String::new(), |g| format!("{} ", crate::arguments::dots(g)));
        format!(
            "{}/{bits} {gateway}{}",
            crate::arguments::dots(self.address),
            self.output
        )
    }
}

struct Lookup {
    routes: Vec<Route>,
}

impl Lookup {
    fn find(&self, address: [u8; 4]) -> Option<&Route> {
        let fits = self.routes.iter().filter(|r| r.holds(address));
        fits.max_by_key(|r| u32::from_be_bytes(r.mask))
    }

    fn add(&mut self, route: Route, replace: bool) -> Result<(), String> {
        let same = |r: &&mut Route| r.address == route.address && r.mask == route.mask;
        match self.routes.iter_mut().find(same) {
            Some(old) if replace => *old = route,
            Some(old) => return Err(format!("conflict with existing route '{}'", old.short())),
            None => self.routes.push(route),
        }
        Ok(())
    }

    fn command(&mut self, word: &str, rest: &str, names: &Names) -> Result<(), String> {
        match word {
            "add" => self.add(Route::read(rest, names)?, false),
            "set" => self.add(Route::read(rest, names)?, true),
            "remove" => {
                let prefix = rest.split_whitespace().next().unwrap_or("");
                let (address, mask) = crate::arguments::prefix(prefix, names)
                    .ok_or(format!("bad network '{prefix}'"))?;
                let address: [u8; 4] = std::array::from_fn(|i| address[i] & mask[i]);
                let count = self.routes.len();
                self.routes
                    .retain(|r| (r.address, r.mask) != (address, mask));
                match self.routes.len() < count {
                    true => Ok(()),
                    false => Err(format!("no route '{prefix}'")),
                }
            }
            other => Err(format!("bad command '{other}'")),
        }
    }
}

impl Element for Lookup {
    fn meaning(&self) -> Option<Meaning> {
        let number = u32::from_be_bytes;
        let routes = self.routes.iter().map(|r| crate::meaning::Route {
            address: number(r.address),
            mask: number(r.mask),
            gateway: r.gateway,
            output: r.output,
        });
        Some(Meaning::Lookup(routes.collect()))
    }

    fn push(&mut self, _: usize, mut packet: Packet, cx: &Context<'_>) {
        match self.find(packet.destination()).copied() {
            Some(route) => {
                if let Some(gateway) = route.gateway {
                    packet.set_destination(gateway);
                }
                cx.push(route.output, packet);
            }
            None => cx.drop(packet),
        }
    }

    fn read(&mut self, name: &str, argument: &str, cx: &Context<'_>) -> Read {
        match name {
            "table" => Some(Ok(self.routes.iter().map(|r| r.show() + "\n").collect())),
            "lookup" => {
                let Some(address) = crate::arguments::ip(argument, &cx.names()) else {
                    return Some(Err(format!("bad address '{argument}'")));
                };
                Some(Ok(match self.find(address) {
                    None => "-1".into(),
                    Some(route) => match route.gateway {
                        Some(gateway) => {
                            format!("{} {}", route.output, crate::arguments::dots(gateway))
                        }
                        None => route.output.to_string(),
                    },
                }))
            }
            _ => None,
        }
    }

    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) -> Written {
        match name {
            "add" | "set" | "remove" => Some(self.command(name, value, &cx.names())),
            "ctrl" => {
                for line in value.lines().map(str::trim).filter(|l| !l.is_empty()) {
                    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
                    if let Err(why) = self.command(word, rest, &cx.names()) {
                        return Some(Err(why));
                    }
                }
                Some(Ok(()))
            }
            "flush" => {
                self.routes.clear();
                Some(Ok(()))
            }
            _ => None,
        }
    }
}
