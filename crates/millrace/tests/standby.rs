//! Streams of rows between two machines of which one lies, or takes nothing: what is refused, what is kept, and that others go on.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millrace_cluster::{HandOver, Machine, Node, NodeId, Place, Refused, Standing, Table};
use millrace_dataplane::classes::away::{CopyCounts, Elsewhere};
use millrace_dataplane::clock;
use millrace_dataplane::copies::{Content, Copies};
use millrace_peer::{Admits, Keeping, Link, Listener, Secret, Security, Standby};

use super::copies::told;

const PRINT: [u8; 32] = [7; 32];
const MAGIC: &[u8] = b"MR-PEER1";
/// The life of node x.
const LIFE: u64 = 3;
/// Kinds of frames.
const GO: u8 = 3;
const END: u8 = 5;
const NO: u8 = 7;
const FOLLOW: u8 = 10;
const ROWS: u8 = 11;

/// Of which nothing is handed over.
struct Still(u32);

impl Machine for Still {
    fn buckets(&self) -> u32 {
        self.0
    }

    fn fingerprint(&self) -> [u8; 32] {
        PRINT
    }

    fn give(&self, _: u32) -> Result<Vec<u8>, Refused> {
        Ok(Vec::new())
    }

    fn take(&self, _: u32, _: &[u8]) -> Result<(), Refused> {
        Ok(())
    }

    fn settle(&self, _: u32, _: Place, _: Option<&[u8]>) {}
}

impl Admits for Still {
    fn may(&self, _: u32, _: u64, _: &str) -> Result<(), Refused> {
        Ok(())
    }

    fn take(&self, _: &HandOver, _: &str) -> Result<(), Refused> {
        Ok(())
    }

    fn came(&self, _: u32, _: bool) {}
}

fn secret(byte: u8) -> Secret {
    Secret::new([byte; 32])
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A machine of a cluster of x, y, z and `gone`, which is dead.
struct End {
    standby: Arc<Standby>,
    link: Arc<Link>,
    _keeping: Keeping,
    _listener: Listener,
}

impl End {
    /// The node `me` of these, of which x has all buckets; the others keep copies of every other one.
    fn begin(content: &Content, me: u16, at: [SocketAddr; 3]) -> Self {
        let mut table = Table::empty(content.buckets);
        table.version = 2;
        let node = |name: &str, peer, life, alive| Node {
            name: name.to_owned(),
            peer,
            life,
            lease: 0,
            alive,
            drained: false,
            copies: true,
        };
        table.nodes = vec![
            node("x", at[0], LIFE, true),
            node("y", at[1], 1, true),
            node("z", at[2], 1, true),
            node("gone", free(), 5, false),
        ];
        table.owners = vec![Some(NodeId(0)); content.buckets as usize];
        for (bucket, standby) in table.standbys.iter_mut().enumerate() {
            *standby = Some(NodeId(1 + bucket as u16 % 2));
        }
        let standing = Arc::new(Standing::new(NodeId(me), table));
        let (secret, own) = (secret(1), at[usize::from(me)]);
        let link = Link::open(own, &standing, &secret, 2).unwrap();
        let name = ["x", "y", "z"][usize::from(me)];
        let security = Security::Plain;
        let of = (name, &secret, &security);
        let standby = Standby::new(of, &standing, PRINT, content.clone(), &link);
        let keeping = standby.begin(|_| ()).unwrap();
        let still = Arc::new(Still(content.buckets));
        let machine: Arc<dyn Machine> = still.clone();
        let copies = (&link, Some(standby.clone()));
        let listener = Listener::begin(own, of, machine, still, copies);
        Self {
            standby,
            link,
            _keeping: keeping,
            _listener: listener.unwrap(),
        }
    }

    fn counts(&self) -> CopyCounts {
        self.link.counts().copies.unwrap()
    }
}

/// What an offer says.
#[derive(Clone)]
struct Said {
    from: &'static str,
    to: &'static str,
    fingerprint: [u8; 32],
    workers: u32,
    time: u64,
    life: u64,
    /// what is signed, and with which secret
    signed: (&'static [u8], u8),
}

fn said() -> Said {
    Said {
        from: "x",
        to: "y",
        fingerprint: PRINT,
        workers: 1,
        time: clock::now(),
        life: LIFE,
        signed: (b"follow", 1),
    }
}

/// Node x, as somebody else may write it.
struct Teller {
    stream: TcpStream,
    challenge: Vec<u8>,
    number: u64,
}

const NONCE: [u8; 32] = [9; 32];

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32 + 1).to_be_bytes();
    [&length[..], &[kind], content].concat()
}

fn heard(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let mut content = vec![0; length as usize - 1];
    stream.read_exact(&mut content).unwrap();
    (head[4], content)
}

fn answer(stream: &mut TcpStream) -> Result<(), String> {
    match heard(stream) {
        (GO, _) => Ok(()),
        (NO, why) => Err(String::from_utf8(why).unwrap()),
        (kind, _) => panic!("an answer of kind {kind}"),
    }
}

impl Teller {
    fn begin(to: SocketAddr, said: &Said) -> Result<Self, String> {
        let mut stream = TcpStream::connect(to).unwrap();
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).unwrap();
        let (kind, hello) = heard(&mut stream);
        assert!(kind == 1 && hello.starts_with(MAGIC));
        let challenge = hello[MAGIC.len() + 32..].to_vec();
        let mut offer = Vec::new();
        for text in [said.from, said.to] {
            offer.extend((text.len() as u16).to_be_bytes());
            offer.extend(text.as_bytes());
        }
        offer.extend(said.fingerprint);
        offer.extend(said.workers.to_be_bytes());
        for number in [2, said.time, said.life] {
            offer.extend(number.to_be_bytes());
        }
        offer.extend([0; 32]);
        offer.extend(NONCE);
        let (what, key) = said.signed;
        let tag = secret(key).tag(&[what, &challenge, &offer]);
        offer.extend(tag);
        stream.write_all(&frame(FOLLOW, &offer)).unwrap();
        answer(&mut stream)?;
        Ok(Self {
            stream,
            challenge,
            number: 0,
        })
    }

    /// The frame that this is as the one of this number.
    fn signed(&self, number: u64, rows: &[u8]) -> Vec<u8> {
        let number = number.to_be_bytes();
        let parts: [&[u8]; 5] = [b"rows", &self.challenge, &NONCE, &number, rows];
        frame(ROWS, &[&secret(1).tag(&parts)[..], rows].concat())
    }

    fn say(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).unwrap();
        answer(&mut self.stream)
    }

    fn tell(&mut self, rows: &[u8]) -> Result<(), String> {
        self.number += 1;
        let frame = self.signed(self.number, rows);
        self.say(&frame)
    }
}

#[test]
fn what_is_not_the_next_of_its_stream_is_refused_and_its_copy_thrown_away() {
    let (tap, ..) = told("nfs/firewall", (1, 1), true, |_| ());
    let frames = tap.frames.lock().unwrap().clone();
    let rows = tap.rows_filed.load(Ordering::Relaxed);
    let had = tap.mirror.lock().unwrap().entries();
    let at = [free(), free(), free()];
    let y = End::begin(&tap.content, 1, at);
    let kept = |count: u64| until("what is kept", || y.counts().entries == count);
    let good = || {
        let before = y.counts().filed;
        let mut teller = Teller::begin(at[1], &said()).unwrap();
        frames.iter().for_each(|f| teller.tell(f).unwrap());
        assert_eq!(y.counts().filed - before, rows);
        kept(had);
        teller
    };
    let other = {
        let teller = Teller::begin(at[1], &said()).unwrap();
        teller.signed(frames.len() as u64 + 1, &frames[0])
    };
    type Bad<'a> = &'a dyn Fn(&Teller) -> Vec<u8>;
    let unsigned = "not signed with the cluster's secret, or not the next ones";
    let bad: [(&str, Bad<'_>, &str); 9] = [
        (
            "forged",
            &|t| {
                let mut bytes = t.signed(t.number + 1, &frames[0]);
                bytes[5] ^= 1;
                bytes
            },
            unsigned,
        ),
        (
            "changed",
            &|t| {
                let mut bytes = t.signed(t.number + 1, &frames[0]);
                *bytes.last_mut().unwrap() ^= 1;
                bytes
            },
            unsigned,
        ),
        (
            "replayed",
            &|t| t.signed(t.number, frames.last().unwrap()),
            unsigned,
        ),
        (
            "after one that is missing",
            &|t| t.signed(t.number + 2, &frames[0]),
            unsigned,
        ),
        ("of another stream", &|_| other.clone(), unsigned),
        (
            "too long",
            &|_| (256 * 1024 + 1_u32).to_be_bytes().to_vec(),
            "a frame of 262145 bytes",
        ),
        ("no frame", &|_| frame(99, &[1, 2, 3]), "what is no frame"),
        ("no rows", &|_| frame(GO, &[]), "rows are expected"),
        (
            "of an object that is none",
            &|t| t.signed(t.number + 1, &[&[0; 10][..], &[8 * 9, 0]].concat()),
            "object 9",
        ),
    ];
    for (which, (what, bad, why)) in bad.into_iter().enumerate() {
        let mut teller = good();
        let refused = teller.say(&bad(&teller)).unwrap_err();
        assert!(refused.contains(why), "{what}: {refused}");
        assert_eq!(y.counts().refused, which as u64 + 1, "{what}");
        kept(0);
    }
    // Clocks that come apart: a frame without rows that is late once may have been held up, rows may have waited, and none is ahead of its time.
    let at_clock = |ns: i64| {
        let now = clock::now().wrapping_add_signed(ns);
        [&[0; 2][..], &now.to_le_bytes()].concat()
    };
    let (second, rows_of_then) = (1_000_000_000, frames[0].clone());
    let then = |ns| [&at_clock(ns)[..], &rows_of_then[10..]].concat();
    for (ahead, last) in [
        (-2 * second, at_clock(-2 * second)),
        (0, at_clock(2 * second)),
        (0, then(2 * second)),
    ] {
        let refused_before = y.counts().refused;
        let mut teller = good();
        for frame in [
            then(-5 * second),
            at_clock(-2 * second),
            at_clock(0),
            at_clock(ahead),
        ] {
            teller.tell(&frame).unwrap();
        }
        let refused = teller.tell(&last).unwrap_err();
        assert!(refused.contains("s apart"), "{refused}");
        assert_eq!(y.counts().refused, refused_before + 1);
        kept(0);
    }
    // A machine that dies within a frame has said nothing wrong: what it told before is kept. So is it where it ends as it should.
    for whole in [false, true] {
        let mut teller = good();
        let (filed, refused) = (y.counts().filed, y.counts().refused);
        let last = match whole {
            true => frame(END, &[]),
            false => teller.signed(teller.number + 1, &frames[0])[..60].to_vec(),
        };
        teller.stream.write_all(&last).unwrap();
        teller.stream.shutdown(Shutdown::Write).unwrap();
        // The other end closes.
        assert_eq!(teller.stream.read(&mut [0; 8]).unwrap(), 0);
        std::thread::sleep(Duration::from_millis(50));
        let now = y.counts();
        assert_eq!((now.filed, now.refused, now.entries), (filed, refused, had));
    }
}

#[test]
fn only_nodes_of_the_table_tell_in_their_life() {
    let (tap, ..) = told("nfs/firewall", (1, 1), true, |_| ());
    let at = [free(), free(), free()];
    let y = End::begin(&tap.content, 1, at);
    let with = |change: &dyn Fn(&mut Said)| {
        let mut other = said();
        change(&mut other);
        Teller::begin(at[1], &other)
    };
    type Change<'a> = &'a dyn Fn(&mut Said);
    let cases: [(Change<'_>, &str); 10] = [
        (&|s| s.life = LIFE - 1, "no living node x in its life 2"),
        (
            &|s| (s.from, s.life) = ("gone", 5),
            "no living node gone in its life 5",
        ),
        (&|s| s.from = "w", "no living node w"),
        (&|s| (s.from, s.life) = ("y", 1), "no living node y"),
        (&|s| s.to = "z", "this is y, not z"),
        (&|s| s.fingerprint = [8; 32], "another function"),
        (&|s| s.workers = 2, "it has 2 workers, this one 1"),
        (&|s| s.time -= 2_000_000_000, "s apart"),
        (&|s| s.signed.1 = 2, "not signed"),
        (&|s| s.signed.0 = b"offer", "not signed"),
    ];
    for (change, why) in cases {
        let refused = with(change).err().unwrap();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(y.counts().entries, 0);
    // A node that has joined again since the table was read tells; its earlier life does not any more.
    let mut later = with(&|s| s.life = LIFE + 1).unwrap();
    later
        .tell(tap.frames.lock().unwrap().last().unwrap())
        .unwrap();
    let mut earlier = with(&|_| ()).unwrap();
    let refused = answer(&mut earlier.stream).unwrap_err();
    assert!(refused.contains("a later life than 3"), "{refused}");
    later.tell(&[]).unwrap();
}

/// A machine that greets as these bytes say and, where that is well, follows and then reads nothing; how often somebody came.
fn deaf(at: SocketAddr, magic: &'static [u8]) -> Arc<AtomicU64> {
    let listener = TcpListener::bind(at).unwrap();
    let came = Arc::<AtomicU64>::default();
    let count = came.clone();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            count.fetch_add(1, Ordering::Relaxed);
            let hello = frame(1, &[magic, &PRINT, &[5; 32]].concat());
            let mut head = [0; 4];
            // Whoever is not content with the greeting goes.
            if stream.write_all(&hello).is_ok() && stream.read_exact(&mut head).is_ok() {
                let mut offer = vec![0; u32::from_be_bytes(head) as usize];
                let _ = stream.read_exact(&mut offer);
                let _ = stream.write_all(&frame(GO, &[]));
            }
            held.push(stream);
        }
    });
    came
}

#[test]
fn a_standby_that_reads_nothing_costs_a_bound_and_others_go_on() {
    let (tap, ..) = told("nfs/firewall", (1, 1), true, |_| ());
    let longest = tap
        .frames
        .lock()
        .unwrap()
        .iter()
        .max_by_key(|f| f.len())
        .cloned();
    let rows = longest.unwrap();
    let at = [free(), free(), free()];
    let came = deaf(at[1], MAGIC);
    let z = End::begin(&tap.content, 2, at);
    let x = End::begin(&tap.content, 0, at);
    until("both follow", || x.counts().begun == 2);
    let connections = || {
        let to = x.standby.following().to.clone();
        (to[0], to[1])
    };
    until("both are told", || {
        connections().0 != 0 && connections().1 != 0
    });
    let (to_y, to_z) = connections();
    let room = |to: u32| {
        let mut all = Vec::new();
        x.standby.room(&mut all);
        let found = all.into_iter().find(|(number, _)| *number == to);
        found.map_or(0, |(_, free)| free)
    };
    let tell = || {
        let before = z.counts().filed;
        assert!(room(to_z) > 0, "others wait");
        x.standby.send(to_z, rows.clone(), 1);
        until("it is filed", || z.counts().filed > before);
        z.counts().filed - before
    };
    let each = tell();
    let (mut bytes, mut told, mut full) = (0, 0, 0);
    let end = Instant::now() + Duration::from_secs(20);
    while x.counts().slow == 0 {
        assert!(Instant::now() < end, "{:?}", x.counts());
        while room(to_y) > 0 {
            x.standby.send(to_y, vec![0; 64 << 10], 1);
            bytes += 64 << 10;
        }
        // The other one is current all the time.
        assert_eq!(tell(), each);
        told += 1;
        full += u32::from(room(to_y) == 0);
        std::thread::sleep(Duration::from_millis(5));
    }
    // What waits here, what is being written, and what the system buffers.
    assert!((4 << 20..24 << 20).contains(&bytes), "{bytes} bytes");
    assert!(full > 50, "{full} of {told} times there was no room");
    until("all is acknowledged", || x.counts().behind == 0);
    until("it is known that it ended", || connections().0 == 0);
    assert_eq!((tell(), x.counts().slow), (each, 1));
    // It is not tried again at once, so that others do not wait again.
    assert_eq!(came.load(Ordering::Relaxed), 1);
    assert_eq!(connections(), (0, to_z));
}

#[test]
fn a_machine_of_another_version_is_told_nothing() {
    let (tap, ..) = told("nfs/firewall", (1, 1), true, |_| ());
    let at = [free(), free(), free()];
    let (older, print) = (deaf(at[1], b"MR-PEER0"), deaf(at[2], MAGIC));
    let x = End::begin(&tap.content, 0, at);
    // One of the right version, which goes on to be told.
    until("both were tried", || {
        older.load(Ordering::Relaxed) > 1 && print.load(Ordering::Relaxed) == 1
    });
    assert_eq!(x.counts().begun, 1);
}
