//! A TCP connection through each function with state goes on while the function is replaced, restarted and killed, and while it is
//! restarted with its maps pinned: what the old one would have carried the new one carries, or it is refused beforehand.
//!
//! Every function of `nfs/` is here, or says why not. A function takes some seconds: it is started five times, and a connection
//! whose segments are lost meanwhile waits for its timers.

use millrace_turns::its_turn;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::changes::Control;
use super::instance::{Instance, command};
use super::net::Net;
use super::transfer::behind_nat;
use crate::common::{output, root};

/// Which end connects to which, and what is set for it.
enum How {
    /// the LAN's host connects to the WAN's
    FromLan(&'static [&'static str]),
    /// the WAN's to the LAN's
    FromWan,
    /// between two networks
    Routed,
    /// no connection goes through it, and why
    Not(&'static str),
}
use How::{FromLan, FromWan, Not, Routed};

const BACK: &str = "it sends packets back out of the port that they came by, so no connection goes through it; \
    kept::every_function_is_replaced_in_mid_trace holds it packet by packet";

const RULES: &str = "packets do not change its state: it is what its file says";

const FUNCTIONS: &[(&str, How)] = &[
    ("abacus", FromLan(&[])),
    ("acl", Not(RULES)),
    (
        "antiddos",
        Not(
            "it lets packets of a known flow pass whatever its counts are, and these are kept packet by packet: \
            kept::every_function_is_replaced_in_mid_trace",
        ),
    ),
    ("bridge", FromLan(&[])),
    ("cl", FromLan(&[])),
    ("conntrack", Not(BACK)),
    ("ddos", Not(BACK)),
    (
        "dnstunnel",
        Not("it looks at DNS over UDP, and passes a connection without its state"),
    ),
    ("dpi", FromLan(&[])),
    ("dummy", FromLan(&[])),
    ("einat", FromLan(&[])),
    ("firewall", FromLan(&[])),
    ("heavyhitter", Not(BACK)),
    ("hhh", FromLan(&[])),
    ("lb", FromWan),
    ("monitor", FromLan(&[])),
    ("nat", FromLan(&[])),
    ("nop", Not("it has no state")),
    ("policer", FromLan(&["--set", "rate=50000000"])),
    ("portknock", Not(BACK)),
    ("portscan", FromLan(&[])),
    ("psd", FromLan(&[])),
    ("router", Routed),
    ("sbridge", Not(RULES)),
    ("sidejacking", FromLan(&[])),
    ("tokenbucket", Not(BACK)),
    (
        "tunnel",
        Not("its other end would have to be another instance, with the keys of this one"),
    ),
    (
        "webfront",
        Not("it answers queries over UDP, and passes no connection"),
    ),
];

/// A connection whose client sends numbered blocks and gets each back before the next.
struct Connection {
    blocks: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    client: JoinHandle<std::io::Result<()>>,
    server: JoinHandle<()>,
}

const PATIENCE: Duration = Duration::from_secs(90);

impl Connection {
    fn begin(net: &Net, from: &str, to: &str, server: &'static str) -> Self {
        let listening = net.thread(to, move || TcpListener::bind((server, 5001)).unwrap());
        let listener = listening.join().unwrap();
        let echo = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut block = [0; 256];
            while stream.read_exact(&mut block).is_ok() && stream.write_all(&block).is_ok() {}
        });
        let (blocks, stop) = (
            Arc::new(AtomicU32::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (done, ended) = (blocks.clone(), stop.clone());
        let client = net.thread(from, move || {
            let mut stream = TcpStream::connect_timeout(
                &(server.parse::<std::net::IpAddr>().unwrap(), 5001).into(),
                PATIENCE,
            )?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            for number in 0_u32.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let block: Vec<u8> = number.to_be_bytes().repeat(64);
                let mut back = vec![0; block.len()];
                stream.write_all(&block)?;
                stream.read_exact(&mut back)?;
                assert!(back == block, "block {number} came back otherwise");
                done.store(number + 1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(())
        });
        Self {
            blocks,
            stop,
            client,
            server: echo,
        }
    }

    /// Waits until so many more blocks have gone there and back.
    fn more(&self, what: &str) {
        let to = self.blocks.load(Ordering::Relaxed) + 50;
        let began = Instant::now();
        while self.blocks.load(Ordering::Relaxed) < to {
            assert!(!self.client.is_finished(), "{what}: the connection is lost");
            assert!(began.elapsed() < PATIENCE, "{what}: the connection hangs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.client.join().unwrap().unwrap();
        self.server.join().unwrap();
        self.blocks.load(Ordering::Relaxed)
    }
}

/// What the ends need beside their addresses to find each other.
fn prepare(net: &Net, function: &str, how: &How) {
    let neighbour = |end: &str, address: &str, other: (&str, &str)| {
        let mac = net.address(other.0, other.1);
        net.ip(
            end,
            &format!("neigh add {address} lladdr {mac} dev {end}0 nud permanent"),
        );
    };
    match how {
        Routed => {
            net.ip("b", "addr del 10.0.0.2/24 dev b0");
            net.ip("b", "addr add 10.0.1.2/24 dev b0");
            net.ip("a", "route add default via 10.0.0.254");
            net.ip("b", "route add default via 10.0.1.254");
        }
        _ => {
            neighbour("a", "10.0.0.2", ("b", "b0"));
            neighbour("b", "10.0.0.1", ("a", "a0"));
        }
    }
    if ["nat", "einat"].contains(&function) {
        behind_nat(net);
    }
    if matches!(how, FromWan) {
        // A backend is known by what it sends.
        let _ = net.within("a", "ping", &["-c", "1", "-W", "1", "10.0.0.2"]);
    }
}

/// What a function is run with.
struct Words {
    folder: tempfile::TempDir,
    all: Vec<String>,
}

impl Words {
    fn of(net: &Net, function: &str, how: &How, keep: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let interfaces = r#"[{"key": 0, "value": {"address": "10.0.0.254", "bits": 24}},
            {"key": 1, "value": {"address": "10.0.1.254", "bits": 24}}]"#;
        std::fs::write(path("interfaces.json"), interfaces).unwrap();
        let mut all = vec![format!("nfs/{function}"), "--ports".into(), net.words("")];
        all.extend(["--control".into(), path("control.sock")]);
        all.extend(keep.iter().map(|word| match *word {
            "FOLDER" => path("kept"),
            word => word.into(),
        }));
        match how {
            FromLan(more) => all.extend(more.iter().map(|m| (*m).to_owned())),
            Routed => all.extend([
                "--map".into(),
                format!("interfaces={}", path("interfaces.json")),
            ]),
            FromWan | Not(_) => {}
        }
        Self { folder, all }
    }

    fn words(&self) -> Vec<&str> {
        self.all.iter().map(String::as_str).collect()
    }

    fn control(&self) -> Control {
        Control(
            self.folder
                .path()
                .join("control.sock")
                .display()
                .to_string(),
        )
    }
}

/// Opens a connection through a function that runs.
fn connected(net: &Net, function: &str, how: &How) -> Connection {
    net.settle();
    prepare(net, function, how);
    let connection = match how {
        FromWan => Connection::begin(net, "b", "a", "10.0.0.1"),
        Routed => Connection::begin(net, "a", "b", "10.0.1.2"),
        _ => Connection::begin(net, "a", "b", "10.0.0.2"),
    };
    connection.more(&format!("{function}, before"));
    connection
}

/// What became of a connection over a restart with all maps pinned: its blocks, or why the function is refused.
fn pinned(function: &str, how: &How) -> Option<Result<u32, String>> {
    let net = Net::new("afpacket")?;
    let words = Words::of(&net, function, how, &["--pin", "FOLDER", "--pin-all"]);
    let words = words.words();
    let mut tried = command(&net, "n", &[&words[..], &["--seconds", "0.1"]].concat());
    let (ran, said) = output(&mut tried);
    if !ran.status.success() {
        let line = |start: &str| said.lines().find_map(|l| l.strip_prefix(start));
        let why = line("error: ").unwrap_or_else(|| panic!("{function}: {said}"));
        let help = line("help: ").unwrap_or_default();
        assert!(help.contains("--state"), "{function}: {said}");
        return Some(Err(why.to_owned()));
    }
    let instance = Instance::start(&net, "n", &words);
    let connection = connected(&net, function, how);
    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{function}: {account}");
    let instance = Instance::start(&net, "n", &words);
    connection.more(&format!("{function}, restarted with its maps pinned"));
    let blocks = connection.end();
    assert_eq!(instance.stop().1, 0, "{function}");
    Some(Ok(blocks))
}

fn carried(function: &str, how: &How, cores: &str) -> Option<u32> {
    let net = Net::new("afpacket")?;
    let keep = format!("--state FOLDER --state-every 0.1 --cores {cores}");
    let keep = crate::common::words(&keep);
    let words = Words::of(&net, function, how, &keep);
    let (control, words) = (words.control(), words.words());
    let instance = Instance::start(&net, "n", &words);
    let connection = connected(&net, function, how);

    let nf = format!("nfs/{function}");
    let replace = ["ctl", "chain", "replace", function, &nf];
    let done = control.ask(&replace);
    let kept = done["kept"].as_array().unwrap();
    assert!(!kept.is_empty(), "{function}: {done}");
    connection.more(&format!("{function}, replaced"));

    let (account, status) = instance.stop();
    assert_eq!(status, 0, "{function}: {account}");
    let instance = Instance::start(&net, "n", &words);
    connection.more(&format!("{function}, restarted"));

    // What was saved last is younger than the connection.
    std::thread::sleep(Duration::from_millis(300));
    instance.killed();
    let instance = Instance::start(&net, "n", &words);
    connection.more(&format!("{function}, killed"));
    let blocks = connection.end();
    assert_eq!(instance.stop().1, 0, "{function}");
    Some(blocks)
}

#[test]
fn a_connection_goes_on_through_replacement_restart_and_kill() {
    if !its_turn("replacement, restart and kill on one worker", 0, 3) {
        return;
    }
    let folders = std::fs::read_dir(root().join("nfs")).unwrap().flatten();
    let folders = folders.filter(|f| f.path().is_dir());
    let mut names: Vec<_> = folders
        .map(|f| f.file_name().into_string().unwrap())
        .collect();
    names.sort();
    let listed: Vec<_> = FUNCTIONS.iter().map(|f| f.0).collect();
    assert_eq!(
        names, listed,
        "each function of nfs/ is carried, or says why not"
    );
    for (function, how) in FUNCTIONS {
        if let Not(why) = how {
            println!("{function}: {why}");
            continue;
        }
        let Some(blocks) = carried(function, how, "1") else {
            return;
        };
        println!("{function}: {blocks} blocks there and back");
    }
}

/// A replacement and a restart keep each worker's part.
#[test]
fn on_two_workers_a_connection_goes_on_through_replacement_restart_and_kill() {
    if !its_turn("replacement, restart and kill on two workers", 1, 3) {
        return;
    }
    for (function, how) in FUNCTIONS {
        if ["firewall", "nat", "bridge"].contains(function) && carried(function, how, "2").is_none()
        {
            return;
        }
    }
}

#[test]
fn a_connection_goes_on_over_a_restart_with_pins_or_they_are_refused() {
    if !its_turn("restart with pins", 2, 3) {
        return;
    }
    let mut went_on = 0;
    for (function, how) in FUNCTIONS {
        if matches!(how, Not(_)) {
            continue;
        }
        match pinned(function, how) {
            None => return,
            Some(Ok(blocks)) => {
                println!("{function}: {blocks} blocks there and back");
                went_on += 1;
            }
            Some(Err(why)) => println!("{function}: refused: {why}"),
        }
    }
    assert!(went_on > 5, "{went_on} functions");
}
