//! A chain that is changed, and packet classes that move from worker to worker, on every kind of live port: no packet is
//! lost, doubled or overtaken.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::instance::{Instance, count};
use super::net::{KINDS, Net, run, until};
use crate::common::{millrace, read, success};

/// Bytes in front of a datagram's content: Ethernet, IPv4, UDP.
const HEADERS: usize = 42;
/// The most datagrams of a source: far more than a test sends, so that it ends whatever happens.
const MOST: u32 = 60_000;

/// Numbered datagrams from several addresses of one side to the other.
pub struct Datagrams {
    stop: Arc<AtomicBool>,
    /// how many of each source were sent
    sent: Arc<AtomicU32>,
    sender: JoinHandle<()>,
    receiver: JoinHandle<BTreeMap<u8, Vec<u32>>>,
}

impl Datagrams {
    /// From 10.0.0.`source` of each of these, some thousand a second of all together.
    pub fn begin(net: &Net, sources: &'static [u8]) -> Self {
        for source in sources.iter().filter(|s| **s != 1) {
            net.ip("a", &format!("addr add 10.0.0.{source}/24 dev a0"));
        }
        let bound = net.thread("b", || UdpSocket::bind("10.0.0.2:9").unwrap());
        let (to, stop) = (bound.join().unwrap(), Arc::new(AtomicBool::new(false)));
        to.set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let (sent, ended, stopped) = (Arc::new(AtomicU32::new(0)), stop.clone(), stop.clone());
        let receiver = std::thread::spawn(move || {
            let mut got: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
            let mut bytes = [0; 64];
            loop {
                match to.recv_from(&mut bytes) {
                    Ok((5, _)) => {
                        let number = u32::from_be_bytes(bytes[1..5].try_into().unwrap());
                        got.entry(bytes[0]).or_default().push(number);
                    }
                    Ok(_) => {}
                    // Nothing came for half a second.
                    Err(_) if stopped.load(Ordering::Relaxed) => return got,
                    Err(_) => {}
                }
            }
        });
        let count = sent.clone();
        let sender = net.thread("a", move || {
            let sockets = sources.iter().map(|source| {
                let socket = UdpSocket::bind((format!("10.0.0.{source}"), 7)).unwrap();
                socket.connect("10.0.0.2:9").unwrap();
                (*source, socket)
            });
            let sockets: Vec<_> = sockets.collect();
            for number in 0..MOST {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                for (source, socket) in &sockets {
                    let [a, b, c, d] = number.to_be_bytes();
                    socket.send(&[*source, a, b, c, d]).unwrap();
                }
                count.store(number + 1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self {
            stop,
            sent,
            sender,
            receiver,
        }
    }

    /// Waits until each source has sent so many more.
    pub fn more(&self, packets: u32) {
        let to = self.sent.load(Ordering::Relaxed) + packets;
        until("datagrams are sent", || {
            self.sent.load(Ordering::Relaxed) >= to
        });
    }

    /// How many each source has sent, once all that arrives has arrived: what came of each.
    pub fn end(self) -> (u32, BTreeMap<u8, Vec<u32>>) {
        self.stop.store(true, Ordering::Relaxed);
        self.sender.join().unwrap();
        (
            self.sent.load(Ordering::Relaxed),
            self.receiver.join().unwrap(),
        )
    }
}

/// The other side answers, so nothing waits for an address any more.
pub fn reached(net: &Net) {
    let began = Instant::now();
    while !net
        .within("a", "ping", &["-c", "1", "-W", "1", "10.0.0.2"])
        .status
        .success()
    {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", net.kind);
    }
}

/// What tcpdump has written of the datagrams, by source.
fn dumped(path: &Path) -> BTreeMap<u8, Vec<u32>> {
    let mut all: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
    for (_, _, bytes) in read(path) {
        // Ethernet's minimum pads them to 60 bytes; UDP's length says what they are.
        if bytes.len() >= HEADERS + 5 && bytes[23] == 17 && bytes[38..40] == [0, 13] {
            let number = bytes[HEADERS + 1..HEADERS + 5].try_into().unwrap();
            let numbers = all.entry(bytes[HEADERS]).or_default();
            numbers.push(u32::from_be_bytes(number));
        }
    }
    all
}

fn tcpdump() -> bool {
    let there = run("tcpdump", &["--version"]).is_ok_and(|o| o.status.success());
    if !there {
        println!("skipped: tcpdump is not installed (scripts/setup.sh test)");
    }
    there
}

pub struct Control(pub String);

impl Control {
    pub fn ask(&self, words: &[&str]) -> Value {
        let mut command = millrace();
        command.args(words).args(["--control", &self.0]);
        success(&mut command)
    }
}

#[test]
fn a_chain_is_changed_on_every_kind_of_live_port() {
    if !tcpdump() {
        return;
    }
    for kind in KINDS {
        let Some(net) = Net::new(kind) else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let control = Control(file("control.sock").display().to_string());
        let words = net.words("");
        let args = format!("nfs/nop nfs/nop --ports {words} --control {}", control.0);
        let args = crate::common::words(&args);
        let instance = Instance::start(&net, "n", &args);
        net.settle();
        reached(&net);
        let datagrams = Datagrams::begin(&net, &[1]);
        let chain = |words: &[&str]| {
            datagrams.more(50);
            control.ask(&[&["ctl", "chain"], words].concat())
        };
        let dump = |name: &str| format!("guest:tcpdump -n -i @ -w {}", file(name).display());
        let words = ["--name", "tap", "--after", "nop"];
        chain(&[&["attach", &dump("first.pcap")], &words[..]].concat());
        chain(&["replace", "tap", &dump("second.pcap")]);
        chain(&["reorder", "tap", "nop-2", "nop"]);
        for _ in 0..5 {
            chain(&["attach", "nop", "--name", "more"]);
            chain(&["replace", "nop", "nop"]);
            chain(&["detach", "more"]);
        }
        chain(&["detach", "tap"]);
        datagrams.more(50);
        let (sent, got) = datagrams.end();
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{kind}: {account}");
        assert_eq!(got[&1], (0..sent).collect::<Vec<_>>(), "{kind}");
        // One guest took the other's place between two packets.
        let (first, second) = (dumped(&file("first.pcap")), dumped(&file("second.pcap")));
        let both = [&first[&1][..], &second[&1][..]].concat();
        let (from, to) = (both[0], both[both.len() - 1]);
        assert!(from > 0 && to < sent - 1 && first[&1].len() > 10, "{kind}");
        assert_eq!(both, (from..=to).collect::<Vec<_>>(), "{kind}");
        println!("{kind}: {sent} packets through 18 changes");
    }
}

#[test]
fn a_packet_class_moves_on_every_kind_of_live_port() {
    const SOURCES: [u8; 8] = [1, 11, 12, 13, 14, 15, 16, 17];
    if !tcpdump() {
        return;
    }
    for kind in KINDS {
        let Some(net) = Net::with_queues(kind, 2) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let control = Control(file("control.sock").display().to_string());
        let words = net.words("");
        let guest = format!(
            "guest:tcpdump -n -i @ -w {}",
            file("{class}.pcap").display()
        );
        let args = format!(
            "--ports {words} --control {} --cores 2 --classes 3",
            control.0
        );
        let args = [&["nfs/nop", &guest], &crate::common::words(&args)[..]].concat();
        let instance = Instance::start(&net, "n", &args);
        net.settle();
        reached(&net);
        let datagrams = Datagrams::begin(&net, &SOURCES);
        datagrams.more(100);
        let mut held = Vec::new();
        for turn in 0..18 {
            let (class, to) = ((turn % 3).to_string(), (turn / 3 % 2).to_string());
            let moved = control.ask(&["ctl", "class", "move", &class, &to]);
            if moved["from"] != moved["to"] {
                held.push(moved["held_us"].as_f64().unwrap());
            }
            datagrams.more(10);
        }
        datagrams.more(100);
        let (sent, got) = datagrams.end();
        let (account, status) = instance.stop();
        assert_eq!(status, 0, "{kind}: {account}");
        assert!(held.len() > 12, "{held:?}");
        let mut seen = BTreeMap::new();
        let mut used = 0;
        for class in 0..3 {
            let own = dumped(&file(&format!("{class}.pcap")));
            used += u32::from(!own.is_empty());
            seen.extend(own);
        }
        assert!(used > 1, "{kind}: all packets are of one class");
        // In order and none twice; what is not there the system says it has lost, where this machine is too busy.
        let mut lost = 0;
        for source in SOURCES {
            let (got, seen) = (&got[&source], &seen[&source]);
            let ascends = |all: &Vec<u32>| all.is_sorted_by(|a, b| a < b);
            assert!(ascends(got), "{kind}: from 10.0.0.{source}: {got:?}");
            assert!(ascends(seen), "{kind}: seen from 10.0.0.{source}: {seen:?}");
            let unseen: Vec<_> = got
                .iter()
                .filter(|n| seen.binary_search(n).is_err())
                .collect();
            assert!(
                unseen.is_empty(),
                "{kind}: unseen from 10.0.0.{source}: {unseen:?}"
            );
            lost += sent as usize - got.len();
        }
        let missed = super::service::missed(&net, &account);
        assert!(
            lost <= missed,
            "{kind}: {lost} lost, {missed} of them by rings and sockets: {account}"
        );
        let workers = account["workers"].as_array().unwrap();
        assert!(workers.iter().all(|w| count(w, "packets") > 0), "{account}");
        held.sort_by(f64::total_cmp);
        println!(
            "{kind}: {sent} packets of each of 8 sources, {} moves, packets of the class held {:.0} µs (at most {:.0})",
            held.len(),
            held[held.len() / 2],
            held[held.len() - 1]
        );
    }
}
