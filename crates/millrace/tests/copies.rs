//! Copies of buckets on another machine: what workers tell while packets come is what they have in the end, whatever begins anew meanwhile; and what is no
//! rows of this function is refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millrace::{Asked, Job, Make, Ports, place};
use millrace_dataplane::copies::{Content, Copies, Following, Mirror, RowError};
use millrace_dataplane::module::Instance;
use millrace_traffic::capture::Writer;
use millrace_traffic::generate::{Generator, Spec};

use super::of_repository;

/// The connection to a second machine.
const OTHER: u32 = 1000;

/// What is told, with the number of rows of each frame.
pub struct Tap {
    pub content: Content,
    pub mirror: Mutex<Mirror>,
    /// a second machine, which is told over [`OTHER`], and how much it takes by now
    other: Mutex<Mirror>,
    other_takes: AtomicUsize,
    deferred: AtomicU64,
    following: Mutex<Arc<Following>>,
    step: AtomicU64,
    asked: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    pub rows_filed: AtomicU64,
    pub frames: Mutex<Vec<Vec<u8>>>,
}

impl Copies for Tap {
    fn step(&self) -> u64 {
        self.step.load(Ordering::Acquire)
    }

    fn following(&self) -> Arc<Following> {
        self.following.lock().unwrap().clone()
    }

    fn room(&self, to: &mut Vec<(u32, usize)>) {
        // Now and then there is none, or little.
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let room = [usize::MAX, 1 << 20, 0, 1 << 20, 300][asked as usize % 5];
        let following = self.following.lock().unwrap();
        let mut all = following.to.clone();
        all.sort_unstable();
        all.dedup();
        let takes = self.other_takes.load(Ordering::Relaxed);
        to.extend(all.into_iter().map(|c| match c {
            OTHER => (OTHER, takes),
            other => (other, room),
        }));
    }

    fn deferred(&self, changes: u64) {
        self.deferred.fetch_add(changes, Ordering::Relaxed);
    }

    fn send(&self, connection: u32, bytes: Vec<u8>, rows: u64) {
        if connection == OTHER {
            assert_eq!(self.other.lock().unwrap().apply(&bytes), Ok(rows));
            return;
        }
        // Only the last connection is to this mirror.
        if self.following.lock().unwrap().to.contains(&connection) {
            let filed = self.mirror.lock().unwrap().apply(&bytes);
            assert_eq!(filed, Ok(rows));
            self.rows_filed.fetch_add(rows, Ordering::Relaxed);
            self.frames.lock().unwrap().push(bytes.clone());
        }
        self.rows.fetch_add(rows.max(1), Ordering::Relaxed);
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn trace(folder: &Path, packets: u64) -> String {
    let file = folder.join("flows.pcap");
    let spec = Spec {
        packets,
        flows: 1500,
        rate: 20_000.0,
        ..Spec::default()
    };
    let mut generator = Generator::new(spec).unwrap();
    let mut writer = Writer::create(&file, &["a"]).unwrap();
    while let Some(record) = generator.next() {
        let (time, wire) = (record.time_ns, record.original_length);
        writer.write(time, 0, wire, record.data).unwrap();
    }
    writer.finish().unwrap();
    file.display().to_string()
}

/// By object and key: the value.
pub type Entries = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

/// Runs a function over the software NIC, each packet `loops` times, or until `act` returns; what was told, what the workers have in the end, and nanoseconds of a packet.
pub fn told(
    nf: &str,
    (workers, loops): (usize, u64),
    copied: bool,
    act: impl FnOnce(&Tap) + Send,
) -> (Arc<Tap>, Entries, f64, u32) {
    let folder = tempfile::tempdir().unwrap();
    let make = Make::default();
    let path = match nf.starts_with('/') {
        true => nf.to_owned(),
        false => of_repository(nf),
    };
    let found = millrace::find(&path).unwrap();
    let written = found.read(&make).unwrap();
    let proved = written.check(make.begin()).unwrap();
    let asked = Asked {
        cores: workers,
        copied,
        ..Asked::default()
    };
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let arranged = proved.arrange(&mut model, &asked).unwrap();
    let arranged = arranged.several(workers).unwrap();
    let function = found.load(&arranged.divided(&make), &mut |_| {}).unwrap();
    let placement = function.placement.as_deref();
    let found = place::buckets(&function.name, placement, &function.module, workers);
    let (classes, contents) = found.unwrap();
    let content = Content {
        module: function.module.clone(),
        contents: contents.clone(),
        workers,
        buckets: classes.count() as u32,
    };
    let objects: Vec<usize> = [&contents.tables, &contents.leases]
        .into_iter()
        .flat_map(|list| list.iter().copied())
        .collect();
    let following = Following {
        version: 1,
        generation: 0,
        to: vec![1; classes.count()],
        arrivals: vec![0; classes.count()],
    };
    let tap = Arc::new(Tap {
        mirror: Mutex::new(Mirror::new(&content)),
        other: Mutex::new(Mirror::new(&content)),
        other_takes: AtomicUsize::new(0),
        deferred: AtomicU64::new(0),
        content,
        following: Mutex::new(Arc::new(following)),
        step: AtomicU64::new(1),
        asked: AtomicU64::new(0),
        rows: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        rows_filed: AtomicU64::new(0),
        frames: Mutex::default(),
    });
    let word = format!(
        "vnic:{}?split=lan=10.0.0.0/16&measure=off&depth=256&txdepth=256",
        trace(folder.path(), 20_000)
    );
    let ports = Ports {
        both: vec![word],
        ..Ports::default()
    };
    let (have, buckets) = (Arc::new(Mutex::new(Entries::new())), classes.count() as u32);
    let own = have.clone();
    let job = Job {
        classes: Some(classes),
        contents: Some(contents),
        copies: copied.then(|| -> Arc<dyn Copies> { tap.clone() }),
        loops: (loops > 0).then_some(loops),
        busy: true,
        at_end: Some(Box::new(move |desk| {
            let file = |instance: &mut Instance| {
                for object in &objects {
                    let found = instance.select(*object, &mut |_| true).unwrap_or_default();
                    let found = found.into_iter().map(|e| ((*object, e.key), e.value));
                    own.lock().unwrap().extend(found);
                }
            };
            file(desk.state(0).unwrap());
            desk.others.iter_mut().for_each(|instance| file(instance));
        })),
        ..Job::of(&function, &ports).unwrap()
    };
    let stop: &'static AtomicBool = Box::leak(Box::default());
    let opened = job.open(&ports, stop).unwrap();
    let account = std::thread::scope(|scope| {
        scope.spawn(|| {
            act(&tap);
            // Rounds without an end end now.
            stop.store(loops == 0, Ordering::Relaxed);
        });
        opened.run(stop, &mut |_| {}).unwrap()
    });
    let ns = 1e9 * account.seconds / account.read as f64;
    let entries = std::mem::take(&mut *have.lock().unwrap());
    (tap, entries, ns, buckets)
}

/// Nothing is missing, and nothing is otherwise.
fn assert_is_all(copy: &Entries, entries: &Entries, nf: &str) {
    let differ = entries
        .iter()
        .filter(|(k, v)| copy.get(*k) != Some(v))
        .count();
    assert_eq!((differ, copy.len()), (0, entries.len()), "{nf}");
}

/// What a mirror has.
fn mirrored(mirror: &Mutex<Mirror>, buckets: u32) -> Entries {
    let mut mirror = mirror.lock().unwrap();
    let entries = (0..buckets).flat_map(|bucket| mirror.take(bucket));
    let entries = entries.map(|(object, e)| ((object, e.key), e.value));
    entries.collect()
}

#[test]
fn a_copy_has_what_workers_have_at_the_end() {
    // Conntrack stores into its values; the firewall has small ones; two workers.
    for (nf, workers) in [("nfs/firewall", 1), ("nfs/conntrack", 2)] {
        let (tap, entries, _, buckets) = told(nf, (workers, 0), true, |tap| {
            // Another connection every few milliseconds, to a mirror that is empty again, and buckets that begin anew.
            for number in 2..12 {
                std::thread::sleep(std::time::Duration::from_millis(25));
                let mut following = tap.following.lock().unwrap();
                let mut next = (**following).clone();
                next.version = u64::from(number);
                if number % 3 == 0 {
                    next.arrivals.iter_mut().step_by(3).for_each(|a| *a += 1);
                } else {
                    next.to.fill(number);
                    tap.mirror.lock().unwrap().begin_anew();
                    tap.frames.lock().unwrap().clear();
                }
                *following = Arc::new(next);
                drop(following);
                tap.step.fetch_add(1, Ordering::Release);
            }
        });
        let whole = tap.mirror.lock().unwrap().is_whole();
        assert!(whole && entries.len() > 100, "{nf}: {}", entries.len());
        let copy = mirrored(&tap.mirror, buckets);
        assert_is_all(&copy, &entries, nf);
    }
}

/// Flows take each other's places; what a packet writes into a value that it has looked up is told as well.
#[test]
fn a_copy_follows_a_table_that_evicts() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(of_repository("nfs/tokenbucket/tokenbucket.c")).unwrap();
    let text = text.replace("BPF_MAP_TYPE_HASH", "BPF_MAP_TYPE_LRU_HASH");
    let text = text.replace("65536", "256");
    let file = folder.path().join("evicting.c");
    std::fs::write(&file, text).unwrap();
    let (tap, entries, _, buckets) = told(file.to_str().unwrap(), (2, 0), true, |tap| {
        until("rows are told", || {
            tap.rows_filed.load(Ordering::Relaxed) > 20_000
        });
    });
    let copy = mirrored(&tap.mirror, buckets);
    let differ = entries.iter().filter(|(k, v)| copy.get(*k) != Some(v));
    assert_eq!((differ.count(), copy.len()), (0, entries.len()));
    // Of 1,500 flows.
    assert!((200..=512).contains(&entries.len()), "{}", entries.len());
}

#[test]
fn a_machine_without_room_is_told_later_and_another_one_at_once() {
    for (nf, workers) in [("nfs/firewall", 1), ("nfs/conntrack", 2)] {
        let (tap, entries, _, buckets) = told(nf, (workers, 0), true, |tap| {
            // Every other bucket is copied to a machine that takes nothing at first.
            let mut following = tap.following.lock().unwrap();
            let mut next = (**following).clone();
            next.version = 2;
            next.to.iter_mut().step_by(2).for_each(|to| *to = OTHER);
            *following = Arc::new(next);
            drop(following);
            tap.step.fetch_add(1, Ordering::Release);
            let whole = |mirror: &Mutex<Mirror>| mirror.lock().unwrap().is_whole();
            until("the one that takes rows has a copy", || {
                whole(&tap.mirror) && tap.deferred.load(Ordering::Relaxed) > 0
            });
            let other = tap.other.lock().unwrap();
            assert_eq!((other.entries(), other.is_whole()), (0, false), "{nf}");
            drop(other);
            // It takes some, and then no more for a while, and then all.
            for takes in [700_000, 500, 0, 600_000, 10, usize::MAX] {
                tap.other_takes.store(takes, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
            until("both have copies", || {
                whole(&tap.other) && whole(&tap.mirror)
            });
        });
        let mut copy = mirrored(&tap.mirror, buckets);
        let other = mirrored(&tap.other, buckets);
        assert!(
            copy.len() > 100 && other.len() > 100,
            "{nf}: {}",
            other.len()
        );
        copy.extend(other);
        assert_is_all(&copy, &entries, nf);
    }
}

#[test]
fn what_is_no_rows_is_refused() {
    let (tap, ..) = told("nfs/firewall", (1, 1), true, |_| ());
    assert_eq!(tap.content.unnoted(), None);
    let (other, ..) = told("nfs/firewall", (1, 1), false, |_| ());
    assert_eq!(other.content.unnoted(), Some("flows"));
    let frames = tap.frames.lock().unwrap().clone();
    let with_rows = frames.iter().max_by_key(|f| f.len()).unwrap();
    let mut mirror = tap.mirror.lock().unwrap();
    mirror.begin_anew();
    let of = |rows: &[u8]| [&[0; 10][..], rows].concat();
    for (frame, why) in [
        (vec![0; 9], RowError::Short),
        (
            [&[1, 0][..], &[0; 8]].concat(),
            RowError::Worker {
                worker: 1,
                workers: 1,
            },
        ),
        (of(&[7]), RowError::Kind { kind: 7 }),
        (of(&[0xf8, 1]), RowError::Kind { kind: 0 }),
        (of(&[8 * 9, 0]), RowError::Object { object: 9 }),
        (of(&[0x80; 11]), RowError::Short),
    ] {
        let refused = mirror.apply(&frame);
        assert!(
            refused == Err(why) || frame[10..].first() == Some(&0xf8),
            "{refused:?}"
        );
    }
    // As many buckets that begin anew as fit a frame.
    let anew = of(&[3, 0].repeat(120_000));
    assert_eq!(mirror.apply(&anew), Ok(0));
    // A place beyond all that there is room for is counted, and kept by nobody.
    let far = of(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert!(mirror.apply(&far).is_ok_and(|_| mirror.full() > 0) || mirror.apply(&far).is_err());
    // Bytes that somebody has changed: refused or filed, and nothing grows beyond the objects' room.
    let mut state = 5_u64;
    for _ in 0..3000 {
        let mut frame = with_rows.clone();
        for _ in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 33) as usize % frame.len();
            frame[at] = (state >> 25) as u8;
        }
        frame.truncate(1 + (state >> 40) as usize % with_rows.len());
        let _ = mirror.apply(&frame);
        assert!(mirror.entries() <= 65_536);
    }
}

/// What it costs: `MILLRACE_LONG=1`, prints nanoseconds of a packet without and with copies, and what they take.
#[test]
fn the_cost_of_copies() {
    if std::env::var_os("MILLRACE_LONG").is_none() {
        return;
    }
    for nf in ["nfs/firewall", "nfs/conntrack", "nfs/policer", "nfs/nat"] {
        let mut best = [f64::MAX; 2];
        let (mut rows, mut bytes) = (0, 0);
        for _ in 0..5 {
            for copied in [false, true] {
                let (tap, _, ns, _) = told(nf, (1, 200), copied, |_| ());
                let at = &mut best[usize::from(copied)];
                *at = at.min(ns);
                if copied {
                    rows = tap.rows.load(Ordering::Relaxed);
                    bytes = tap.bytes.load(Ordering::Relaxed);
                }
            }
        }
        let packets = 200 * 20_000;
        println!(
            "{nf}: {:.1} ns a packet without copies, {:.1} with; {rows} rows, {bytes} bytes, {:.2} bytes a packet",
            best[0],
            best[1],
            bytes as f64 / f64::from(packets)
        );
    }
}
