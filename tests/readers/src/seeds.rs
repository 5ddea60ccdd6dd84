//! Seeds: real input of each reader, since a fuzzer that starts from nothing spends its time on magic numbers.

use std::ffi::OsStr;
use std::fs::{read, read_dir};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use millrace_state::{Content, Element, Identity, Object, Piece, State, What};
use millrace_traffic::capture::{Format, Writer};
use millrace_traffic::generate::{Generator, Spec};

const ENTRIES: [(&str, &str); 3] = [
    (
        "entries.json",
        r#"[{"key": {"source": "10.0.0.1", "port": 80}, "value": -1}, {"key": [1, "0x02"], "value": "be16:80 zeros:6"}]"#,
    ),
    (
        "nested.json",
        r#"[{"key": 1, "value": [{"key": 2, "value": 7}]}, {"key": 3, "value": "inner"}]"#,
    ),
    (
        "entries.csv",
        "key,value\n192.0.2.0/24,10.0.0.1 be16:80 02:00:00:00:00:0a u32:1 zeros:8\n1,second\n",
    ),
];

/// Records of a map, key and value behind each other.
const RAW: &[u8] =
    b"\x0a\0\0\x01\0\x50\x02\0\0\0\0\x0a\xff\xff\xff\xff\x01\0\x02\0\x03\0\0\0\x07\0\0\0\0\0\0\0";

/// A packet test with every statement of the language.
const CASE: &str = r#"# Title
set timeout=60
repeat 3
LAN: eth / vlan 7 / ip 10.0.0.$i > 192.0.2.1 ttl 3 frag 8 more options 0101 / tcp $(i+1) > 80 syn ack options 020405b4 / payload "hi"
-> WAN: eth / ip6 ::1 > ::2 / hopopts 0102 / icmp6 toobig 1280 / ip6 ::1 > ::2
after 1.5ms
end
state flows = 3
records events = 0x2
at 9
1: raw 00 / cut 0
-> drop over_rate
"#;

const PACKETS: [&str; 3] = [
    "eth / vlan 3 / ip 10.0.0.1 > 10.0.0.2 / icmp unreachable 1 / ip 1.1.1.1 > 2.2.2.2 / udp 5 > 6",
    "eth / ip6 ::1 > ::2 / hopopts 0104 / frag6 more id 7 / tcp 1 > 2 syn / payload 0102 / trailer 00",
    "eth / arp who-has 10.0.0.1 tell 10.0.0.2",
];

const REQUESTS: &str = r#"{"v":1,"id":7,"do":"hello"}
{"v":1,"do":"get","object":"routes","key":"192.0.2.0/24"}
{"v":1,"do":"edit","more":true,"edits":[{"object":"next","op":"set","key":1,"value":"second"}]}
{"v":1,"do":"edit","edits":[{"object":"flows","op":"clear"},{"object":"next","op":"delete","key":0}]}
{"v":1,"do":"entries","object":"flows","cursor":3,"limit":9}
{"v":1,"do":"set","setting":"a=1"}
{"v":1,"do":"stop"}
"#;

const CHAIN: &str = r#"name = "edge"
connect = [["fw.1", "tap.0"], ["tap.1", "nat.0"]]
entry = ["fw.0", "nat.1"]
[[element]]
nf = "fw"
capacity = { flows = 100_000 }
set = { timeout = 60 }
[[element]]
nf = "nat"
map = { pool = "pool.csv" }
[[element]]
name = "tap"
guest = ["tcpdump", "-i", "@"]
memory = 64
jit = true
environment = { TZ = "UTC0" }
"#;

/// Every production of the Click language.
const CLICK: &str = r#"require(package x, library lib); define($a 1, $b "$a \<48 45>");
# 3 "other.click"
elementclass F { $a, K $b, __REST__ $r | input -> x :: Null($a, '$b', ${r[0]-z}) -> output || ... }
elementclass G { input => ( [0] -> Paint(1) -> [0]; [1] -> [1] ) => [0,1] output; }
i, j :: Idle; /* text */ a :: A; // more
i [0-2] => Null, ( -> Null -> ), [3] j [] -> Discard;
i [3] -> { -> IPFilter(allow src 10.0.0.0/8 && not (tcp dst port 80 or 81), deny all) -> } -> f :: F(1, K 2, 3) -> Discard;
j[1] -> IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, drop) -> d :: Discard;
Script(set x $(add 1 2), print $x, goto begin $(eq $x 1), label begin)
"#;

/// Elements of all kinds, with packets from a dump in the file `IN`.
const CHAINS: [&str; 12] = [
    "FromIPSummaryDump(IN, STOP true, CHECKSUM true) -> CheckIPHeader(VERBOSE true) -> rw :: IPRewriter(pattern 1.0.0.1 1024-1026# - - 0 1, drop) -> IPPrint(a, PAYLOAD ascii) -> DecIPTTL -> c :: IPClassifier(tcp dst port 80 or 81, udp && ip[6:2] & 0x3fff != 0, icmp type echo, -) => Print, Counter(COUNT_CALL 1 c.x), Null, Null -> [1] rw [1] -> ToIPSummaryDump(-, FIELDS timestamp ip_src sport payload tcp_opt)",
    "FromIPSummaryDump(IN, STOP true) -> IPGWOptions(1.1.1.1) -> IPFragmenter(28) -> Strip(3) -> Wire -> Unstrip(40) -> EtherEncap(0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> t :: Tee -> Queue(2) -> Unqueue -> Discard; t[1] -> t2 :: PaintSwitch; t2[0] -> ICMPError(1.1.1.1, timeexceeded) -> FixIPSrc(2.2.2.2) -> Discard; t2[1] -> Discard",
    "InfiniteSource(DATA \\<4500>, LIMIT 5, STOP true) -> MarkIPHeader(0) -> StoreData(1, ABC, GROW true) -> MoveData(0, 1, 9, GROW true) -> Resize(-1, +3) -> Pad(60) -> Truncate(50) -> VLANEncap(5) -> VLANDecap -> UDPIPEncap(1.0.0.1, 1, 2.0.0.2, 2) -> CheckUDPHeader -> IPMirror -> EtherMirror -> ToDump(OUT)",
    "FromIPSummaryDump(IN, TIMING true) -> r :: RadixIPLookup(10.0.0.0/8 1.1.1.1 0, 0/0 1); r[0] -> q :: ARPQuerier(1.0.0.1, 1:1:1:1:1:1) -> ARPResponder(0/0 2:2:2:2:2:2) -> [1] q; r[1] -> Discard",
    "DriverManager(set x 1, label a, set x $x$x, goto a $(lt $x 9), print $(add $x 2), write s.run, wait 1s, print >F r.table, pause, stop) s :: Script(TYPE PASSIVE, return $(s.run)) r :: StaticIPLookup(1.0.0.0/8 0) Idle -> r -> Discard",
    "RatedSource(RATE 100, LIMIT 9) -> s :: Switch(1); s[0], s[1] -> Queue -> Shaper(50) -> RatedUnqueue(10) -> Script(TYPE PACKET, set i $(add $i 1), return $(mod $i 2)) => Discard, Print(CONTENTS ascii) -> Discard",
    "i :: Idle; i -> c :: Classifier(12/0806 20/0001, !0/ff%0f, 3/??1?, -) => i, i, i, i; FromDump(IN) -> Discard; DriverManager(write i.x, read c.y, print $(i.name))",
    "FromIPSummaryDump(IN) -> IPFilter(deny src net 10.0.0.0/8 ? not (ip ttl < 3) : tcp opt syn or ack, 1 host 1.2.3.4 && frag, allow all) => Discard, Discard; FromIPSummaryDump(IN) -> RoundRobinSwitch => Paint(1), StoreIPAddress(1.1.1.1, dst), SetIPDSCP(3), MarkIPCE(true) -> Hub -> Discard",
    "FromIPSummaryDump(IN) -> Queue -> LinkUnqueue(9223372036s, 1b/s) -> SetTimestampDelta -> IPEncap(udp, 1.0.0.1, 2.0.0.2) -> ICMPError(1.1.1.1, unreachable, port) -> ICMPRewriter(rw) -> Discard; Idle -> rw :: UDPRewriter(pattern 255.255.255.255/32 1-65535 - - 0 0, TIMEOUT 9223372036, GUARANTEE 1, MAPPING_CAPACITY 1) -> Discard",
    "FromIPSummaryDump(DATA \"!data ts_sec ts_usec payload_len ip_len ip_fragoff tcp_flags\n9223372036 9223372036854775 4294967295 - 65528+ FS\n-9223372036 0 1 4294967295 8 0\", TIMING true) -> HostEtherFilter(1:1:1:1:1:1) -> SetVLANAnno(5) -> VLANEncap(ANNO) -> IPPrint(PAYLOAD hex) -> ToDump(OUT, SNAPLEN 5)",
    "TimedSource(0.000001, LIMIT 9) -> q :: MixedQueue(2) -> StrideSched(1, 65536) -> TimedSink(1ms); Idle -> [1] q; InfiniteSource(LIMIT 3) -> [0] PrioSched -> BandwidthRatedUnqueue(1kBps, BURST_DURATION 9223372036s) -> BandwidthRatedSplitter(0) -> CheckPaint(1) -> PaintTee(0) => Discard, Discard",
    "m :: RoundRobinIPMapper(- - - - 0 0, 1.0.0.1 5-6? - 80 0 0); FromIPSummaryDump(IN) -> IPRewriter(m) -> IPAddrRewriter(pattern 3.0.0.1-3.0.0.9# - 0 0) -> ICMPPingRewriter(pattern 2.0.0.2 - 0-9 0 0) -> IPAddrPairRewriter(pattern 1.0.0.0/30 - 0 0) -> CheckTCPHeader -> ICMPPingResponder -> Discard",
];

/// Bytes of a state file before its body: mark, version, length, checksum.
const STATE_FRONT: usize = 52;

/// What a large file is cut to, in bytes.
const LARGEST: usize = 20_000;

/// The seeds of a reader, each with a name for its file; `root` is the repository's.
///
/// # Errors
/// A file of the repository cannot be read.
pub fn of(reader: &str, root: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    match reader {
        "elf" | "check" => files(&root.join("crates/object/tests/programs"), "elf"),
        // A program that is not large, as this machine has it.
        "guest" => Ok(vec![cut(Path::new("/bin/true"))?]),
        "pcap" => Ok(vec![
            cut(&root.join("captures/talk.pcap"))?,
            ("small.pcap".to_owned(), capture(Format::Pcap)?),
            ("small.pcapng".to_owned(), capture(Format::Pcapng)?),
        ]),
        "map_file" => {
            let mut all = ENTRIES.map(|(name, text)| seed(name, text)).to_vec();
            all.push(("raw".to_owned(), RAW.to_vec()));
            Ok(all)
        }
        "control" => Ok(vec![seed("requests", REQUESTS)]),
        "chain" => Ok(vec![seed("edge.toml", CHAIN)]),
        "click" => {
            let mut all = vec![seed("all.click", CLICK)];
            let chains = CHAINS.iter().enumerate();
            all.extend(chains.map(|(number, text)| seed(&format!("{number}.click"), text)));
            Ok(all)
        }
        "sequenced" => files(&root.join("tests/sequencer"), "pcap"),
        "state" => {
            let mut file = Vec::new();
            saved().write(&mut file)?;
            // The body alone, too, which the reader's target puts behind a right checksum.
            let body = file.get(STATE_FRONT..).unwrap_or_default().to_vec();
            Ok(vec![("file".to_owned(), file), ("body".to_owned(), body)])
        }
        "snapshot" | "btf" => Ok(Vec::new()), // these take a description of a change, not a file
        "rules" => files(&root.join("crates/classify/tests/data"), "rules"),
        "routes" => files(&root.join("crates/routes/tests/seeds"), "json"),
        "packet_language" => {
            let mut all = vec![seed("case.pkt", CASE)];
            for (number, text) in PACKETS.iter().enumerate() {
                all.push(seed(&format!("{number}.txt"), text));
                let packet = millrace_traffic::language::packet(text);
                let packet = packet.map_err(other)?;
                all.push((format!("{number}.packet"), packet));
            }
            for function in listed(&root.join("nfs"))? {
                let cases = function.join("tests");
                if cases.is_dir() {
                    let name = function.file_name().unwrap_or_default().to_string_lossy();
                    let named = files(&cases, "pkt")?.into_iter();
                    all.extend(named.map(|(case, bytes)| (format!("{name}-{case}"), bytes)));
                }
            }
            Ok(all)
        }
        _ => Err(io::Error::other(format!("no reader `{reader}`"))),
    }
}

fn seed(name: &str, text: &str) -> (String, Vec<u8>) {
    (name.to_owned(), text.as_bytes().to_vec())
}

fn cut(path: &Path) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = read(path)?;
    bytes.truncate(LARGEST);
    let name = path.file_name().unwrap_or_default();
    Ok((name.to_string_lossy().into_owned(), bytes))
}

fn listed(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn files(folder: &Path, extension: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let paths = listed(folder)?.into_iter();
    paths
        .filter(|path| path.extension() == Some(OsStr::new(extension)))
        .map(|path| cut(&path))
        .collect()
}

/// A capture of some packets of both families, as it is written.
fn capture(format: Format) -> io::Result<Vec<u8>> {
    let spec = Spec {
        packets: 12,
        flows: 3,
        ipv6: 0.5,
        ..Spec::default()
    };
    let sink = Sink::default();
    let mut writer = Writer::new("seed", sink.clone(), format, &["lan", "wan"]);
    let mut generator = Generator::new(spec).map_err(other)?;
    while let Some(record) = generator.next() {
        writer
            .write(record.time_ns, record.interface, 0, record.data)
            .map_err(other)?;
    }
    writer.finish().map_err(other)?;
    let mut bytes = sink.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *bytes))
}

/// The state of one element with one table of two entries.
fn saved() -> State {
    let mut content = Content::default();
    content.push(&Piece::new(What::Head));
    for (place, key) in [(0, &[1, 1]), (4, &[2, 2])] {
        content.push(&Piece {
            place,
            stamp: 1_763_700_000_000_000_000,
            key,
            value: &[1, 2, 3],
            ..Piece::new(What::Entry)
        });
    }
    content.push(&Piece::new(What::End));
    let identity = Identity {
        name: "flows".into(),
        kind: "map".into(),
        key_bytes: 2,
        value_bytes: 3,
        capacity: 10,
        held: "copied".into(),
        detail: String::new(),
    };
    let object = Object {
        identity,
        parts: vec![content],
        before: vec![(vec![1], vec![])],
    };
    State {
        time: 5,
        seed: 6,
        numbers: vec![u64::MAX],
        steering: vec![1, 2],
        elements: vec![Element {
            name: "nat".into(),
            timers: vec![(9, vec![1, 2])],
            objects: vec![object],
        }],
    }
}

fn other(error: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("{error:?}"))
}

/// A file in memory that outlives its writer.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend_from_slice(from);
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
