//! Streams and datagrams between two ends of which one lies: what is refused, and that nothing is put in.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millrace_cluster::vouch::{Answer, Ask};
use millrace_cluster::{HandOver, Machine, Node, NodeId, Peers, Place, Refused, Standing, Table};
use millrace_dataplane::classes::away::{Elsewhere, MARK, Refusal, Stray};
use millrace_peer::{Admits, Hands, Link, Listener, Secret, Security};
use millrace_wire::geneve::{Carries, Forwarded};

pub const PRINT: [u8; 32] = [7; 32];

/// A machine that notes what comes; it is full for bucket 3.
#[derive(Default)]
struct Notes {
    taken: Mutex<Vec<(u32, Vec<u8>)>>,
    came: Mutex<Vec<(u32, bool)>>,
}

impl Machine for Notes {
    fn buckets(&self) -> u32 {
        8
    }

    fn fingerprint(&self) -> [u8; 32] {
        PRINT
    }

    fn room(&self) -> u64 {
        1 << 20
    }

    fn give(&self, _: u32) -> Result<Vec<u8>, Refused> {
        Ok(Vec::new())
    }

    fn take(&self, bucket: u32, entries: &[u8]) -> Result<(), Refused> {
        if bucket == 3 {
            return Err(Refused {
                why: "no room".to_owned(),
            });
        }
        self.taken.lock().unwrap().push((bucket, entries.to_vec()));
        Ok(())
    }

    fn settle(&self, _: u32, _: Place, _: Option<&[u8]>) {}
}

impl Admits for Notes {
    fn may(&self, bucket: u32, version: u64, from: &str) -> Result<(), Refused> {
        let may = version == 2 && from == "x" && bucket != 4;
        may.then_some(()).ok_or(Refused {
            why: "not by the table".to_owned(),
        })
    }

    fn take(&self, what: &HandOver, from: &str) -> Result<(), Refused> {
        self.may(what.bucket, what.version, from)?;
        Machine::take(self, what.bucket, &what.entries)
    }

    fn vouch(&self, ask: &Ask) -> Option<Answer> {
        Some(Answer {
            life: ask.life + 1,
            version: ask.version,
            refused: None,
        })
    }

    fn came(&self, bucket: u32, yours: bool) {
        self.came.lock().unwrap().push((bucket, yours));
    }
}

/// An address that is free now.
pub fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

pub fn node(name: &str, peer: SocketAddr) -> Node {
    Node {
        name: name.to_owned(),
        peer,
        life: 0,
        lease: 0,
        alive: true,
        drained: false,
        copies: false,
    }
}

pub fn secret(byte: u8) -> Secret {
    Secret::new([byte; 32])
}

fn link(own: SocketAddr, other: SocketAddr, me: u16) -> (Arc<Link>, Arc<Standing>) {
    let mut table = Table::empty(8);
    table.version = 2;
    table.nodes = match me {
        0 => vec![node("x", own), node("y", other)],
        _ => vec![node("x", other), node("y", own)],
    };
    table.owners = vec![Some(NodeId(1)); 8];
    let standing = Arc::new(Standing::new(NodeId(me), table));
    (Link::open(own, &standing, &secret(1), 2).unwrap(), standing)
}

/// A receiver, y.
pub struct Y {
    notes: Arc<Notes>,
    pub at: SocketAddr,
    pub link: Arc<Link>,
    _listener: Listener,
}

pub fn y(security: &Security) -> Y {
    let (notes, at) = (Arc::new(Notes::default()), free());
    let (link, _) = link(at, free(), 1);
    let machine: Arc<dyn Machine> = notes.clone();
    let (secret, admits) = (secret(1), notes.clone());
    let listener = Listener::begin(at, ("y", &secret, security), machine, admits, (&link, None));
    Y {
        notes,
        at,
        link,
        _listener: listener.unwrap(),
    }
}

pub fn hands(byte: u8, name: &str, security: &Security) -> Hands {
    let at = free();
    Hands::new(name, &secret(byte), security, &link(at, free(), 0).0)
}

pub fn what(bucket: u32, bytes: usize) -> HandOver {
    HandOver {
        bucket,
        version: 2,
        fingerprint: PRINT,
        entries: vec![0xa5; bytes],
    }
}

fn until(holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Certificates of these nodes, each in a folder of its name; false where openssl is not here.
pub fn certificates(folder: &Path, authority: &str, nodes: &[&str]) -> bool {
    let script = format!(
        "set -e; E='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
         openssl req -x509 $E -keyout {authority}.key -out {authority}.pem -subj /CN=ca -days 2
         for n in {}; do mkdir $n; cp {authority}.pem $n/ca.pem
         openssl req $E -keyout $n/key.pem -subj /CN=$n -out $n/req
         echo subjectAltName=DNS:$n > $n/ext
         openssl x509 -req -in $n/req -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -days 2 -out $n/cert.pem -extfile $n/ext; done",
        nodes.join(" ")
    );
    let made = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder)
        .output();
    made.is_ok_and(|o| o.status.success())
}

#[test]
fn a_bucket_goes_whole_and_what_may_not_is_refused() {
    let y = y(&Security::Plain);
    let to = node("y", y.at);
    let x = hands(1, "x", &Security::Plain);
    for bytes in [0, 1, 500_000] {
        x.hand(&to, &what(1, bytes)).unwrap();
    }
    until(|| y.notes.came.lock().unwrap().len() == 3);
    let taken = std::mem::take(&mut *y.notes.taken.lock().unwrap());
    let lengths: Vec<_> = taken.iter().map(|(_, e)| e.len()).collect();
    assert_eq!(lengths, [0, 1, 500_000]);
    assert!(
        taken
            .iter()
            .all(|(b, e)| *b == 1 && e.iter().all(|b| *b == 0xa5))
    );
    assert!(
        y.notes
            .came
            .lock()
            .unwrap()
            .iter()
            .all(|came| *came == (1, true))
    );

    let other = HandOver {
        fingerprint: [8; 32],
        ..what(1, 1)
    };
    let newer = HandOver {
        version: 3,
        ..what(1, 1)
    };
    for (hands, to, what, why) in [
        (&x, &to, what(3, 1), "no room"),
        (&x, &to, what(4, 1), "not by the table"),
        (&x, &to, newer, "not by the table"),
        (&x, &to, what(8, 1), "there are 8 buckets, and no 8"),
        (
            &x,
            &to,
            what(1, (1 << 20) + 1),
            "more than there is room for",
        ),
        (&x, &to, other, "another function"),
        (&x, &node("z", y.at), what(1, 1), "this is y, not z"),
        (
            &hands(1, "w", &Security::Plain),
            &to,
            what(1, 1),
            "not by the table",
        ),
        (
            &hands(2, "x", &Security::Plain),
            &to,
            what(1, 1),
            "not signed with the cluster's secret",
        ),
        (&x, &node("y", free()), what(1, 1), "it is not there"),
    ] {
        let refused = hands.hand(to, &what).unwrap_err();
        assert!(refused.why.contains(why), "{refused}");
    }
    assert!(y.notes.taken.lock().unwrap().is_empty());
    assert!(y.link.counts().refused >= 7);
}

/// All that one stream said, said again: the other end draws another number.
/// Who asks to be vouched for knows the cluster's secret, and with TLS is who it says.
#[test]
fn only_nodes_of_the_cluster_are_vouched_for() {
    let ask = |from: &str| Ask {
        from: from.to_owned(),
        life: 7,
        version: 2,
        ttl: 5_000_000_000,
    };
    let y_plain = y(&Security::Plain);
    let to = node("y", y_plain.at);
    let answer = hands(1, "x", &Security::Plain).vouch(&to, &ask("x"));
    assert_eq!(answer.map(|a| (a.life, a.version)), Some((8, 2)));
    assert_eq!(hands(2, "x", &Security::Plain).vouch(&to, &ask("x")), None);
    let long = "x".repeat(4096);
    assert_eq!(
        hands(1, "x", &Security::Plain).vouch(&to, &ask(&long)),
        None
    );
    let folder = tempfile::tempdir().unwrap();
    if !certificates(folder.path(), "ca", &["x", "y"]) {
        println!("skipped: openssl makes no certificates here");
        return;
    }
    let tls = |name: &str| Security::tls(&folder.path().join(name)).unwrap();
    let y_tls = y(&tls("y"));
    let (to, x) = (node("y", y_tls.at), hands(1, "x", &tls("x")));
    assert!(x.vouch(&to, &ask("x")).is_some());
    assert_eq!(x.vouch(&to, &ask("z")), None);
}

#[test]
fn a_stream_that_is_replayed_or_changed_puts_nothing_in() {
    let y = y(&Security::Plain);
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let (through, at) = (between.local_addr().unwrap(), y.at);
    let tap = std::thread::spawn(move || {
        let (mut from, _) = between.accept().unwrap();
        let mut to = TcpStream::connect(at).unwrap();
        let (mut back, mut forth) = (to.try_clone().unwrap(), from.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
        let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            said.extend(&buffer[..n]);
            to.write_all(&buffer[..n]).unwrap();
        }
        said
    });
    let x = hands(1, "x", &Security::Plain);
    x.hand(&node("y", through), &what(1, 300)).unwrap();
    // It would keep the stream for the next bucket.
    drop(x);
    let said = tap.join().unwrap();
    until(|| y.notes.came.lock().unwrap().len() == 1);
    y.notes.taken.lock().unwrap().clear();
    let before = y.link.counts().refused;
    let mut streams = vec![
        said.clone(),
        said[..said.len() / 2].to_vec(),
        vec![0xff; 64],
        Vec::new(),
    ];
    // One bit of each part.
    for at in (0..said.len()).step_by(37) {
        let mut other = said.clone();
        other[at] ^= 1;
        streams.push(other);
    }
    let count = streams.len() as u64;
    for said in streams {
        let mut stream = TcpStream::connect(y.at).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        // It may close before all is said.
        let _ = stream.write_all(&said);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    until(|| y.link.counts().refused == before + count);
    assert!(y.notes.taken.lock().unwrap().is_empty());
}

/// A wire between x and y that counts streams, and notes what x says over the last one.
struct Wire {
    pub at: SocketAddr,
    streams: Arc<AtomicUsize>,
    /// both ends of the last one, that of y first
    last: Arc<Mutex<Option<[TcpStream; 2]>>>,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    fn to(at: SocketAddr) -> Self {
        let between = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Self {
            at: between.local_addr().unwrap(),
            streams: Arc::default(),
            last: Arc::default(),
            said: Arc::default(),
        };
        let (streams, last, said) = (wire.streams.clone(), wire.last.clone(), wire.said.clone());
        std::thread::spawn(move || {
            for from in between.incoming().flatten() {
                let to = TcpStream::connect(at).unwrap();
                let (mut back, mut forth) = (to.try_clone().unwrap(), from.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
                said.lock().unwrap().clear();
                let (mut reader, mut writer) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                *last.lock().unwrap() = Some([to, from]);
                streams.fetch_add(1, Ordering::AcqRel);
                let said = said.clone();
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(n @ 1..) = reader.read(&mut buffer) {
                        said.lock().unwrap().extend(&buffer[..n]);
                        writer.write_all(&buffer[..n]).unwrap();
                    }
                });
            }
        });
        wire
    }
}

#[test]
fn buckets_go_over_one_stream_and_over_another_one_where_that_has_ended() {
    let y = y(&Security::Plain);
    let wire = Wire::to(y.at);
    let (x, to) = (hands(1, "x", &Security::Plain), node("y", wire.at));
    for bucket in [0, 1, 2, 5] {
        x.hand(&to, &what(bucket, 300)).unwrap();
    }
    assert_eq!(wire.streams.load(Ordering::Acquire), 1);
    // One that is refused ends it, and costs the next one nothing but another stream.
    x.hand(&to, &what(3, 1)).unwrap_err();
    x.hand(&to, &what(6, 300)).unwrap();
    assert_eq!(wire.streams.load(Ordering::Acquire), 2);
    for end in wire.last.lock().unwrap().take().unwrap() {
        end.shutdown(std::net::Shutdown::Both).unwrap();
    }
    x.hand(&to, &what(7, 300)).unwrap();
    assert_eq!(wire.streams.load(Ordering::Acquire), 3);
    // A node of the same name in another life has other entries.
    let again = Node { life: 1, ..to };
    x.hand(&again, &what(0, 300)).unwrap();
    assert_eq!(wire.streams.load(Ordering::Acquire), 4);
    let taken = y.notes.taken.lock().unwrap();
    let buckets: Vec<u32> = taken.iter().map(|(b, _)| *b).collect();
    assert_eq!(buckets, [0, 1, 2, 5, 6, 7, 0]);
}

#[test]
fn what_was_said_over_a_stream_is_not_taken_again_over_the_same_one() {
    let y = y(&Security::Plain);
    let wire = Wire::to(y.at);
    let x = hands(1, "x", &Security::Plain);
    x.hand(&node("y", wire.at), &what(1, 300)).unwrap();
    until(|| y.notes.came.lock().unwrap().len() == 1);
    let before = y.link.counts().refused;
    let said = wire.said.lock().unwrap().clone();
    let mut last = wire.last.lock().unwrap().take().unwrap();
    last[0].write_all(&said).unwrap();
    until(|| y.link.counts().refused == before + 1);
    assert_eq!(y.notes.taken.lock().unwrap().len(), 1);
}

#[test]
fn with_tls_nobody_comes_in_without_a_certificate_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| Security::tls(&folder.path().join(name)).unwrap();
    if !certificates(folder.path(), "ca", &["x", "y", "w"]) {
        println!("skipped: openssl is not here");
        return;
    }
    let strange = tempfile::tempdir().unwrap();
    assert!(certificates(strange.path(), "other", &["x"]));
    // It trusts the receiver, and is not trusted.
    std::fs::copy(
        folder.path().join("ca.pem"),
        strange.path().join("x/ca.pem"),
    )
    .unwrap();
    let y = y(&of("y"));
    let to = node("y", y.at);
    hands(1, "x", &of("x"))
        .hand(&to, &what(1, 300_000))
        .unwrap();
    until(|| y.notes.came.lock().unwrap().len() == 1);
    y.notes.taken.lock().unwrap().clear();
    let stranger = Security::tls(&strange.path().join("x")).unwrap();
    for (who, security) in [("plain", Security::Plain), ("stranger", stranger)] {
        let refused = hands(1, "x", &security).hand(&to, &what(1, 1));
        println!("{who}: {}", refused.unwrap_err());
    }
    // A certificate of the cluster, of another node.
    let refused = hands(1, "x", &of("w")).hand(&to, &what(1, 1)).unwrap_err();
    assert!(
        refused.why.contains("the certificate is not x's"),
        "{refused}"
    );
    // The receiver is another one than the table says.
    let refused = hands(1, "x", &of("x")).hand(&node("w", y.at), &what(1, 1));
    assert!(refused.unwrap_err().why.contains("certificate"));
    assert!(y.notes.taken.lock().unwrap().is_empty());
}

#[test]
fn a_packet_goes_to_its_buckets_node_and_datagrams_of_others_are_counted() {
    let (at_x, at_y) = (free(), free());
    let (x, standing) = link(at_x, at_y, 0);
    let (y, _) = link(at_y, at_x, 1);
    let mut arrivals = y.arrivals().unwrap();
    let frame = [9_u8; 60];
    let stray = |class, hops, frame| Stray {
        class,
        port: 1,
        hops,
        frame,
    };
    x.send(&stray(5, 0, &frame)).unwrap();
    assert_eq!(x.send(&stray(5, 2, &frame)), Err(Refusal::Circle));
    assert_eq!(x.send(&stray(9, 0, &frame)), Err(Refusal::NoOwner));
    assert_eq!(x.send(&stray(5, 0, &[0; 65_500])), Err(Refusal::TooLong));
    let mut table = (*standing.table()).clone();
    table.nodes[1].alive = false;
    standing.set_table(table);
    assert_eq!(x.send(&stray(5, 0, &frame)), Err(Refusal::NoOwner));
    // Neither of a node's address nor Geneve.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&[0; 50], at_y).unwrap();
    let mut came = Vec::new();
    until_came(&mut || {
        while let Some(arrival) = arrivals.next().unwrap() {
            came.push((arrival.port, arrival.hops, arrival.frame.to_vec()));
        }
        y.counts().malformed == 1
    });
    assert_eq!(came, [(1, 1, frame.to_vec())]);
    assert_eq!((x.counts().sent, y.counts().received), (1, 1));
    assert!(!x.accepts(), "no lease was given");
    standing.set_until(u64::MAX);
    assert!(x.accepts());
}

#[test]
fn a_datagram_that_no_member_signed_is_no_packet() {
    let (at_x, at_y) = (free(), free());
    let (y, _) = link(at_y, at_x, 1);
    let mut arrivals = y.arrivals().unwrap();
    // At the address of a node, which had it a moment ago: what its packets look like.
    let seen = {
        let (x, _) = link(at_x, at_y, 0);
        x.send(&Stray {
            class: 5,
            port: 1,
            hops: 0,
            frame: &[9; 60],
        })
        .unwrap();
        let mut datagram = None;
        until_came(&mut || {
            datagram = arrivals.next().unwrap().map(|a| a.frame.to_vec());
            datagram.is_some()
        });
        Forwarded {
            bucket: 5,
            port: 1,
            version: 2,
            hops: 1,
            carries: Carries::Packet,
        }
        .header(secret(1).network())
    };
    let liar = UdpSocket::bind(at_x).unwrap();
    let mark = Forwarded {
        carries: Carries::Through,
        ..Forwarded::read(&[&seen[..], &[0; 14]].concat()).unwrap().0
    };
    let mark = mark.header(secret(1).network());
    let lies = [
        [&seen[..], &[9; 60]].concat(),
        [&mark[..], &[0; 10]].concat(),
    ];
    for (count, lie) in (1..).zip(lies) {
        liar.send_to(&lie, at_y).unwrap();
        until_came(&mut || {
            assert!(arrivals.next().unwrap().is_none(), "it was taken");
            y.counts().malformed == count
        });
    }
    assert!(!y.passed(0), "an answer of nobody");
}

#[test]
fn a_mark_comes_back_by_the_way_of_packets_and_is_answered_once() {
    let (at_x, at_y) = (free(), free());
    let (x, own) = link(at_x, at_y, 0);
    let (y, other) = link(at_y, at_x, 1);
    let (mut to_x, mut to_y) = (x.arrivals().unwrap(), y.arrivals().unwrap());
    let number = x.mark(5, 1, 1).unwrap();
    assert_eq!(x.mark(5, 1, 7), None, "there is no such machine");
    let mut came = None;
    until_came(&mut || {
        if let Some(mark) = to_y.next().unwrap() {
            came = Some((mark.port, mark.hops, mark.class, mark.frame.to_vec()));
        }
        came.is_some()
    });
    let (port, hops, class, mark) = came.unwrap();
    assert_eq!((port, hops, class), (1, 1 | MARK, 5));
    assert!(!x.passed(number), "nobody has answered");
    y.reached(class, &mark);
    y.reached(class, &mark[1..]);
    until_came(&mut || {
        assert!(to_x.next().unwrap().is_none(), "an answer is no packet");
        x.passed(number)
    });
    assert!(!x.passed(number), "an answer is one");
    // It came back to its own machine.
    let number = x.mark(5, 1, 1).unwrap();
    x.reached(class, &[&[0, 0][..], &number.to_be_bytes()].concat());
    assert!(x.passed(number));
    assert_eq!(
        (x.counts().marks, x.counts().sent, y.counts().received),
        (2, 0, 0)
    );
    // One that knows a newer table is heard: this machine reads it.
    let mut newer = (*own.table()).clone();
    newer.version += 1;
    own.set_table(newer);
    x.mark(5, 1, 1).unwrap();
    until_came(&mut || {
        while to_y.next().unwrap().is_some() {}
        other.stale()
    });
}

#[test]
fn what_comes_faster_than_it_is_taken_is_counted() {
    let (at_x, at_y) = (free(), free());
    let (x, _) = link(at_x, at_y, 0);
    let (y, _) = link(at_y, at_x, 1);
    let mut arrivals = y.arrivals().unwrap();
    let stray = Stray {
        class: 5,
        port: 1,
        hops: 0,
        frame: &[9; 1400],
    };
    // More than the buffer has room for, and a sender that is told to wait has sent nothing.
    for _ in 0..20_000 {
        let sent = x.send(&stray);
        assert!(matches!(sent, Ok(()) | Err(Refusal::Full)), "{sent:?}");
    }
    until_came(&mut || {
        while arrivals.next().unwrap().is_some() {}
        let (sent, came) = (x.counts().sent, y.counts());
        came.missed > 0 && came.received + came.missed == sent
    });
    assert!(y.counts().received > 100, "{:?}", y.counts());
}

fn until_came(holds: &mut dyn FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(2));
    }
}
