//! `fib_lookup` and `check_mtu` for comparison with other implementations: a search of all entries of the
//! object `.routes`, laid out as fastpath/state/routes_table.h says, after Linux 6.18's net/core/filter.c.

use millrace_object::program::ObjectId;
use millrace_object::state::routes;

use super::{Machine, Violation};

const EINVAL: i64 = -22;
const ENODEV: i64 = -19;
const EAFNOSUPPORT: i64 = -97;

const PORT: u8 = 1;
const ROUTE: u8 = 2;
const NEIGHBOUR: u8 = 3;
const MAIN: u32 = 254;
const LOCAL: u32 = 255;

/// An entry: its key of 24 bytes, its value of 64.
type Entry = (Vec<u8>, Vec<u8>);

fn word(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    u32::from_le_bytes(part.unwrap_or_default())
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let part = bytes.get(at..at + N).and_then(|b| b.try_into().ok());
    part.unwrap_or([0; N])
}

/// The first `bits` bits of two addresses are the same.
fn matches(a: &[u8], b: &[u8], bits: usize) -> bool {
    (0..bits).all(|i| (a[i / 8] ^ b[i / 8]) >> (7 - i % 8) & 1 == 0)
}

struct Interface {
    flags: u8,
    mac: [u8; 6],
    mtu: u32,
    mtu6: u32,
}

fn interface(entries: &[Entry], index: u32, ports: u32) -> Option<Interface> {
    let found = entries
        .iter()
        .find(|(k, _)| k[0] == PORT && word(k, 4) == index);
    match found {
        Some((_, v)) => Some(Interface {
            flags: v[1],
            mac: part(v, 24),
            mtu: word(v, 8),
            mtu6: word(v, 12),
        }),
        None if (1..=ports).contains(&index) => Some(Interface {
            flags: 0,
            mac: [0; 6],
            mtu: 1500,
            mtu6: 1500,
        }),
        None => None,
    }
}

/// The hops of the longest matching route, by number; IPv4 with `out` takes only hops by that interface.
fn longest<'e>(
    entries: &'e [Entry],
    family: u8,
    table: u32,
    to: &[u8],
    out: Option<u32>,
) -> Vec<&'e Entry> {
    let merged = |t: u32| if family == 4 && t == LOCAL { MAIN } else { t };
    for bits in (0..=if family == 4 { 32 } else { 128 }).rev() {
        let here = |(k, v): &&Entry| {
            let by = out.is_none_or(|o| family == 6 || (6..=9).contains(&v[0]) || word(v, 4) == o);
            let prefix = (k[0], k[1], usize::from(k[2])) == (ROUTE, family, bits);
            prefix && merged(word(k, 4)) == merged(table) && by && matches(&k[8..], to, bits)
        };
        let mut hops: Vec<&Entry> = entries.iter().filter(here).collect();
        hops.sort_by_key(|(k, _)| k[3]);
        if !hops.is_empty() {
            return hops;
        }
    }
    Vec::new()
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hop that a flow takes, as fastpath/state/routes_lookup.h defines it.
fn share<'e>(hops: &[&'e Entry], family: u8, params: &[u8]) -> Option<&'e Entry> {
    let mix = |flow: u64, w: u64| fold(flow ^ 0x9e37_79b9_7f4a_7c15, w ^ 0xbf58_476d_1ce4_e5b9);
    let flow = if family == 4 {
        mix(
            0,
            u64::from(word(params, 32)) << 32 | u64::from(word(params, 16)),
        )
    } else {
        let words = (16..48)
            .step_by(8)
            .map(|at| u64::from_le_bytes(part(params, at)));
        words.fold(0, mix)
    };
    let total: u64 = hops.iter().map(|(_, v)| u64::from(word(v, 20))).sum();
    let mut at = ((flow >> 32) * total) >> 32;
    for hop in hops {
        let weight = u64::from(word(&hop.1, 20));
        if at < weight {
            return Some(hop);
        }
        at -= weight;
    }
    hops.first().copied()
}

fn stays_on_link(address: &[u8; 16]) -> bool {
    let address = std::net::Ipv6Addr::from(*address);
    address.is_multicast() || address.is_unicast_link_local() || address.is_loopback()
}

/// The call's result, and what it leaves in `params`.
fn lookup(entries: &[Entry], params: &mut [u8], flags: u32, ports: u32) -> i64 {
    if params.len() < 64 || flags > 0x3f {
        return EINVAL;
    }
    let (direct, output, skip, by_table, source) =
        (flags & 1, flags & 2, flags & 4, flags & 8, flags & 16);
    let family = match params[0] {
        2 => 4,
        10 => 6,
        _ => return EAFNOSUPPORT,
    };
    if family == 6 && (stays_on_link(&part(params, 32)) || stays_on_link(&part(params, 16))) {
        return 4;
    }
    let index = word(params, 8);
    let Some(input) = interface(entries, index, ports) else {
        return ENODEV;
    };
    if input.flags & (if family == 4 { 1 } else { 2 }) == 0 {
        return 5;
    }
    let out = (output != 0).then_some(index);
    let to: [u8; 16] = part(params, 32);
    let mut hops = Vec::new();
    let mut table = MAIN;
    if direct != 0 && by_table != 0 {
        table = match word(params, 48) {
            0 => MAIN,
            number => number,
        };
        params[48..52].fill(0);
    }
    if direct == 0 && family == 6 {
        hops = longest(entries, family, LOCAL, &to, out);
    }
    if hops.is_empty() {
        hops = longest(entries, family, table, &to, out);
    }
    match hops.first().map(|(_, v)| v[0]) {
        Some(1) => {}
        Some(6) => return 1,
        Some(7) => return 2,
        Some(8) => return 3,
        _ => return 4,
    }
    let hop = match out {
        None => share(&hops, family, params),
        Some(o) => {
            let by = hops.iter().find(|(_, v)| word(v, 4) == o);
            by.or(hops.first()).copied()
        }
    };
    let Some((_, hop)) = hop else { return 4 };
    answer(
        entries,
        hop,
        family,
        params,
        (skip != 0, source != 0),
        ports,
    )
}

fn answer(
    entries: &[Entry],
    hop: &[u8],
    family: u8,
    params: &mut [u8],
    (skip, source): (bool, bool),
    ports: u32,
) -> i64 {
    let index = word(hop, 4);
    let out = interface(entries, index, ports).unwrap_or(Interface {
        flags: 0,
        mac: [0; 6],
        mtu: 1500,
        mtu6: 1500,
    });
    let mtu = match (word(hop, 8), family) {
        (0, 4) => out.mtu.min(0xffff),
        (0, _) => out.mtu6.clamp(1280, 0xffff + 40),
        (locked, _) => locked,
    };
    if u32::from(u16::from_le_bytes(part(params, 6))) > mtu {
        params[6..8].copy_from_slice(&(mtu as u16).to_le_bytes());
        return 8;
    }
    if hop[1] & 4 != 0 {
        return 6;
    }
    let next = if hop[2] == 0 { family } else { hop[2] };
    let bytes = |family: u8| if family == 4 { 4 } else { 16 };
    if hop[2] != 0 {
        let n = bytes(next);
        params[32..32 + n].copy_from_slice(&hop[32..32 + n]);
    }
    params[12..16].copy_from_slice(&word(hop, 16).to_le_bytes());
    params[8..12].copy_from_slice(&index.to_le_bytes());
    if source {
        if family == 6 && hop[3] != 6 {
            return 9;
        }
        let n = bytes(family);
        params[16..16 + n].copy_from_slice(&hop[48..48 + n]);
    }
    if next != family {
        params[0] = 10;
    }
    if !skip {
        let to: [u8; 16] = part(params, 32);
        let known = entries.iter().find(|(k, _)| {
            (k[0], k[1], word(k, 4)) == (NEIGHBOUR, next, index)
                && matches(&k[8..], &to, 8 * bytes(next))
        });
        let Some((_, neighbour)) = known else {
            return 7;
        };
        params[58..64].copy_from_slice(&neighbour[24..30]);
        params[52..58].copy_from_slice(&out.mac);
    }
    params[48..52].fill(0);
    if mtu != 0 {
        params[6..8].copy_from_slice(&(mtu as u16).to_le_bytes());
    }
    0
}

impl Machine<'_> {
    fn routes(&self) -> Vec<Entry> {
        let of = |o: &millrace_object::program::StateObject| o.kind == &routes::KIND;
        match self.program.objects.iter().position(of) {
            Some(at) => self.entries(ObjectId(at)).into_iter().collect(),
            None => Vec::new(),
        }
    }

    pub(super) fn fib_lookup(&mut self, a: [u64; 5], ports: u32) -> Result<u64, Violation> {
        let mut params = self.bytes_at(a[1], a[2] as u32)?;
        let result = lookup(&self.routes(), &mut params, a[3] as u32, ports);
        self.put(a[1], &params)?;
        Ok(result as u64)
    }

    pub(super) fn check_mtu(
        &mut self,
        a: [u64; 5],
        port: u32,
        ports: u32,
    ) -> Result<u64, Violation> {
        if a[4] != 0 {
            return Ok(EINVAL as u64);
        }
        let index = if a[1] as u32 == 0 {
            port + 1
        } else {
            a[1] as u32
        };
        let Some(interface) = interface(&self.routes(), index, ports) else {
            return Ok(ENODEV as u64);
        };
        let given = word(&self.bytes_at(a[2], 4)?, 0);
        let length = match given {
            0 => self.packet_bytes().len() as u32,
            given => given.wrapping_add(14),
        };
        let fits = length.wrapping_add(a[3] as u32) as i32 <= interface.mtu.wrapping_add(14) as i32;
        self.put(a[2], &interface.mtu.to_le_bytes())?;
        Ok(u64::from(!fits))
    }
}
