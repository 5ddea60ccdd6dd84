//! `ARPQuerier(IP, ETH [, TIMEOUT, CAPACITY, …])`: input 0: an Ethernet header for the destination annotation is put in front; packets to
//! an address that is not known are held, and a request (RFC 826) goes out (output 1, or 0 if it is not connected). Input 1: answers.
//!
//! At most 2048 packets are held (CAPACITY), the oldest goes first. A request for an address goes out at most every 100 ms. Answers are
//! believed for TIMEOUT (300 s), of at most 65,536 addresses (ENTRY_CAPACITY, or 0), the oldest goes first. Handlers: `table`,
//! `drops`, `queries`, `insert` and `delete` (written).

use super::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("ARPQuerier", "2/1-2", "hh/h", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords(
        "IP ETH TIMEOUT CAPACITY ENTRY_CAPACITY BROADCAST TABLE POLL_TIMEOUT \
         ENTRY_PACKET_CAPACITY CAPACITY_SLIM_FACTOR",
    );
    let timeout = args.duration_word("TIMEOUT", 300 * crate::arguments::SECOND)?;
    let capacity = args.number_word("CAPACITY", 2048)?;
    let entries = args.number_word("ENTRY_CAPACITY", 0)?;
    let entries = usize::try_from(entries).map_err(|_| "bad ENTRY_CAPACITY")?;
    let first = args.needed("IP", "IP, ETH")?;
    let second = args.take("ETH");
    args.all();
    let ip = crate::arguments::ip(&first, args.names)
        .or(crate::arguments::prefix(&first, args.names).map(|p| p.0));
    let ip = ip.ok_or(format!("bad address '{first}'"))?;
    let mac = crate::arguments::ethernet(second.as_deref().unwrap_or(&first), args.names)
        .ok_or("bad Ethernet address")?;
    let capacity = usize::try_from(capacity).map_err(|_| "bad CAPACITY")?;
    Ok(Box::new(Querier {
        ip,
        mac,
        timeout,
        capacity,
        entries: if entries == 0 {
            MOST_ENTRIES
        } else {
            entries.min(MOST_ENTRIES)
        },
        asked: BTreeMap::new(),
        table: BTreeMap::new(),
        held: VecDeque::new(),
        drops: 0,
        queries: 0,
    }))
}

/// Addresses that are known, at most.
const MOST_ENTRIES: usize = 65_536;
/// Time between two requests for an address, nanoseconds.
const AGAIN: i64 = crate::arguments::SECOND / 10;

struct Querier {
    ip: [u8; 4],
    mac: [u8; 6],
    timeout: i64,
    capacity: usize,
    entries: usize,
    /// when an address that packets are held for was asked for last
    asked: BTreeMap<[u8; 4], i64>,
    /// addresses and when they were learned
    table: BTreeMap<[u8; 4], ([u8; 6], i64)>,
    held: VecDeque<([u8; 4], Packet)>,
    drops: u64,
    queries: u64,
}

impl Querier {
    fn send(&self, mut packet: Packet, to: [u8; 6], cx: &Context<'_>) {
        let mut header = [0; 14];
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&self.mac);
        header[12] = 8;
        packet.prepend(&header);
        packet.mark_mac(0);
        cx.push(0, packet);
    }

    fn ask(&mut self, target: [u8; 4], cx: &Context<'_>) {
        let mut frame = [0; 42];
        frame[..6].fill(255);
        frame[6..12].copy_from_slice(&self.mac);
        frame[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame[22..28].copy_from_slice(&self.mac);
        frame[28..32].copy_from_slice(&self.ip);
        frame[38..42].copy_from_slice(&target);
        self.queries += 1;
        let mut packet = Packet::new(&frame);
        packet.time = cx.now();
        cx.push(usize::from(cx.connected(1)), packet);
    }

    fn learn(&mut self, ip: [u8; 4], mac: [u8; 6], cx: &Context<'_>) {
        if self.table.len() >= self.entries
            && !self.table.contains_key(&ip)
            && let Some(oldest) = { self.table.iter() }
                .min_by_key(|(_, (_, at))| *at)
                .map(|(ip, _)| *ip)
        {
            self.table.remove(&oldest);
        }
        self.table.insert(ip, (mac, cx.now()));
        self.asked.remove(&ip);
        let (ready, held) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(to, _)| *to == ip);
        self.held = held;
        let ready: VecDeque<_> = ready;
        for (_, packet) in ready {
            self.send(packet, mac, cx);
        }
    }
}

impl Element for Querier {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Outside("it holds packets until ARP answers"))
    }

    fn push(&mut self, port: usize, packet: Packet, cx: &Context<'_>) {
        if port == 1 {
            let data = packet.data();
            let reply = data.get(12..22) == Some(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
            let sender = data.get(28..32).and_then(|b| b.try_into().ok());
            let mac = data.get(22..28).and_then(|b| b.try_into().ok());
            if let (true, Some(sender), Some(mac)) = (reply, sender, mac) {
                self.learn(sender, mac, cx);
            }
            return cx.drop(packet);
        }
        let to = packet.destination();
        if to == [255; 4] || to[0] >> 4 == 14 {
            let mac = if to == [255; 4] {
                [255; 6]
            } else {
                [1, 0, 0x5e, to[1] & 0x7f, to[2], to[3]]
            };
            return self.send(packet, mac, cx);
        }
        if to == [0; 4] {
            self.drops += 1;
            return cx.drop(packet);
        }
        match self
            .table
            .get(&to)
            .copied()
            .filter(|(_, at)| cx.now() - at < self.timeout)
        {
            Some((mac, _)) => self.send(packet, mac, cx),
            None => {
                let asked = self.asked.get(&to).is_some_and(|at| cx.now() - at < AGAIN);
                self.held.push_back((to, packet));
                if self.held.len() > self.capacity
                    && let Some((_, old)) = self.held.pop_front()
                {
                    self.drops += 1;
                    cx.drop(old);
                    // Of an address for which none is held any more nothing is kept.
                    let held = &self.held;
                    self.asked
                        .retain(|ip, _| held.iter().any(|(to, _)| to == ip));
                }
                if !asked && self.held.iter().any(|(other, _)| *other == to) {
                    self.asked.insert(to, cx.now());
                    self.ask(to, cx);
                }
            }
        }
    }

    fn read(&mut self, name: &str, _: &str, _: &Context<'_>) -> Read {
        let text = match name {
            "table" => {
                let line = |(ip, (mac, _)): (&[u8; 4], &([u8; 6], i64))| {
                    let mac: Vec<_> = mac.iter().map(|b| format!("{b:02X}")).collect();
                    format!("{} 1 {}\n", crate::arguments::dots(*ip), mac.join("-"))
                };
                self.table.iter().map(line).collect()
            }
            "drops" => self.drops.to_string(),
            "queries" => self.queries.to_string(),
            "length" => self.held.len().to_string(),
            _ => return None,
        };
        Some(Ok(text))
    }

    fn write(&mut self, name: &str, value: &str, cx: &Context<'_>) -> Written {
        let words = crate::language::args::words(value);
        let ip = words
            .first()
            .and_then(|w| crate::arguments::ip(w, &cx.names()));
        let mac = words
            .get(1)
            .and_then(|w| crate::arguments::ethernet(w, &cx.names()));
        match (name, ip, mac) {
            ("insert", Some(ip), Some(mac)) => self.learn(ip, mac, cx),
            ("delete", Some(ip), _) => {
                self.table.remove(&ip);
            }
            ("clear", ..) => self.table.clear(),
            ("insert" | "delete", ..) => return Some(Err(format!("bad addresses '{value}'"))),
            _ => return None,
        }
        Some(Ok(()))
    }
}
