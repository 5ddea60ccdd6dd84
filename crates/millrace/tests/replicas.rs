//! State replicated on workers: between captures and behind a software NIC whose sequencer is hardware; edits while packets
//! come; a worker that falls behind; functions that cannot be replicated.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use millrace::{Account, Asked, Error, Function, Job, Kind, Make, Ports, Strategy};
use millrace_dataplane::Mailbox;
use millrace_dataplane::mailbox::{Desk, Order};
use millrace_dataplane::module::{Instance, Keeping};
use millrace_dataplane::replica::{At, Edit, Effect, Group};

use super::of_repository;

static STOP: AtomicBool = AtomicBool::new(false);

/// A function whose state is replicated on this many workers.
fn replicated(name: &str, cores: usize) -> Result<Function, Error> {
    replicated_at(&of_repository(&format!("nfs/{name}")), cores)
}

/// The same of a function that lies anywhere.
fn replicated_at(path: &str, cores: usize) -> Result<Function, Error> {
    let make = Make::default();
    let found = millrace::find(path).unwrap();
    let written = found.read(&make).unwrap();
    let proved = written.check(make.begin()).unwrap();
    let asked = Asked {
        cores,
        strategy: Some(Strategy::Replicate),
        ..Asked::default()
    };
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let arranged = proved.arrange(&mut model, &asked)?.several(cores)?;
    assert_eq!(arranged.placement.strategy(), Strategy::Replicate);
    found.load(&arranged.divided(&make), &mut |_| {})
}

/// A software NIC that receives the bundled capture; the LAN is at its first port.
fn device(options: &str) -> Ports {
    let file = of_repository("captures/talk.pcap");
    Ports {
        inputs: vec![format!(
            "vnic:{file}?measure=off&split=lan=10.0.0.0/24{options}"
        )],
        outputs: vec!["null:".into()],
        ..Ports::default()
    }
}

/// The first object of each kind of difference between the states of all workers.
fn unlike(desk: &mut Desk<'_>) -> Vec<String> {
    let now = desk.now;
    let mut all: Vec<&mut Instance> = desk.instance.take().into_iter().collect();
    all.append(&mut desk.others);
    let objects = all[0].module().objects().to_vec();
    let mut unlike = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let own = object.kind.per_cpu || object.records;
        if own || all[0].module().keeping(index) != Keeping::All {
            continue;
        }
        let contents: Vec<_> = all
            .iter_mut()
            .map(|i| i.save(index, now).unwrap())
            .collect();
        if contents.iter().any(|c| *c != contents[0]) {
            unlike.push(object.name.clone());
        }
    }
    assert!(all.len() > 1 && !objects.is_empty());
    unlike
}

/// What is left of a run: its account, and objects that differ between replicas.
fn ran(mut job: Job, ports: &Ports) -> (Account, Vec<String>) {
    let found = Arc::new(Mutex::new(None));
    let told = found.clone();
    job.at_end = Some(Box::new(move |desk| {
        *told.lock().unwrap() = Some(unlike(desk));
    }));
    let account = job.open(ports, &STOP).unwrap().run(&STOP, &mut |_| {});
    let found = found.lock().unwrap().take();
    (account.unwrap(), found.unwrap())
}

#[test]
fn a_device_sprays_and_all_workers_have_the_same_state() {
    for (name, workers, options) in [
        ("ddos", 2, ""),
        ("firewall", 5, ""),
        ("conntrack", 3, ""),
        ("psd", 2, ""),
        // Threads of the device end at moments of their own: the last row is behind the packets of all.
        ("ddos", 2, "&threads=2"),
        ("firewall", 5, "&threads=3"),
        ("psd", 3, "&threads=3"),
    ] {
        let function = replicated(name, workers).unwrap();
        let ports = device(options);
        let job = Job {
            loops: Some(8),
            ..Job::of(&function, &ports).unwrap()
        };
        let (account, unlike) = ran(job, &ports);
        assert!(account.errors.is_empty(), "{name}: {:?}", account.errors);
        assert!(unlike.is_empty(), "{name}: {unlike:?}");
        assert_eq!(account.read, 8 * 1619);
        let fates = [
            account.forwarded,
            account.dropped,
            account.passed,
            account.consumed,
            account.aborted,
        ];
        assert_eq!(fates.iter().sum::<u64>(), account.read);
        assert_eq!(account.aborted, 0);
        // In turn, 32 in a row; each row once at each of the others.
        let most = account.workers.iter().map(|w| w.packets).max().unwrap();
        let least = account.workers.iter().map(|w| w.packets).min().unwrap();
        assert!(most - least <= 32 && account.workers.len() == workers);
        let replayed = account.replayed.unwrap();
        let others = workers as u64 - 1;
        assert!(
            replayed > 0 && replayed.is_multiple_of(others),
            "{replayed}"
        );
    }
}

/// The objects of one replica, and the memory of all.
#[test]
fn an_object_is_counted_once_and_its_memory_for_each_replica() {
    let one = millrace::find(&of_repository("nfs/conntrack")).unwrap();
    let one = one.load(&Make::default(), &mut |_| {}).unwrap();
    let three = replicated("conntrack", 3).unwrap();
    let ports = Ports {
        inputs: vec![of_repository("captures/talk.pcap")],
        ..Ports::default()
    };
    let one = millrace::run(&one, &ports, &STOP).unwrap();
    let three = millrace::run(&three, &ports, &STOP).unwrap();
    assert_eq!((one.replayed, three.workers.len()), (None, 3));
    for (a, b) in one.objects.iter().zip(&three.objects) {
        assert_eq!(
            (a.entries, a.capacity),
            (b.entries, b.capacity),
            "{}",
            a.name
        );
        assert_eq!(3 * a.bytes, b.bytes, "{}", a.name);
        assert!(b.by_worker.is_empty());
    }
    let fates = |a: &Account| (a.read, a.forwarded, a.dropped, a.reasons.clone());
    assert_eq!(fates(&one), fates(&three));
}

/// What the replicas have in common, from the first worker.
fn group(mailbox: &Mailbox) -> Arc<Group> {
    let begin = Instant::now();
    loop {
        let (sender, told) = mpsc::channel();
        let job = move |desk: &mut Desk<'_>| {
            let _ = sender.send(desk.group.clone());
        };
        assert!(mailbox.post(Box::new(job)));
        match told.recv_timeout(Duration::from_secs(20)) {
            Ok(Some(group)) => return group,
            _ => assert!(begin.elapsed() < Duration::from_secs(60), "no group"),
        }
    }
}

/// Some hundred edits, each made by all replicas at one place among the packets: after them all replicas are alike.
#[test]
fn edits_under_traffic_leave_replicas_alike() {
    let workers = 3;
    let function = replicated("ddos", workers).unwrap();
    let ports = device("&rate=100k");
    let mailboxes: Vec<Arc<Mailbox>> = (0..workers).map(|_| Arc::default()).collect();
    let job = Job {
        loops: None,
        mailboxes: mailboxes.clone(),
        ..Job::of(&function, &ports).unwrap()
    };
    let object = function.module.objects().iter();
    let object = object.clone().position(|o| o.name == "sources").unwrap();
    let (key, value) = {
        let info = &function.module.objects()[object];
        (info.key_bytes, info.value_bytes)
    };
    let (made, moments) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let count = made;
    let seen = moments.clone();
    let editor = std::thread::spawn(move || {
        let group = group(&mailboxes[0]);
        for n in 0..300_u32 {
            let (made, moments) = (count.clone(), seen.clone());
            let make = move |instance: &mut Instance, at: At| {
                let now = at.time;
                // Also sources that packets write: their order against packets shows.
                let mut from = (0x0a00_0000 | (n % 40)).to_be_bytes().to_vec();
                from.resize(key, 0);
                let done = match n % 3 {
                    2 => instance.remove(object, &from, now).map(drop),
                    _ => instance.set(object, &from, &vec![n as u8; value], now),
                };
                done.unwrap();
                made.fetch_add(1, Ordering::Relaxed);
                moments.lock().unwrap().push((n, now));
            };
            let edit = Edit {
                make: Arc::new(make),
                effect: Effect::State,
            };
            assert!(group.edit(edit).is_some());
            std::thread::sleep(Duration::from_micros(300));
        }
        let begin = Instant::now();
        while count.load(Ordering::Relaxed) < 300 * workers {
            assert!(begin.elapsed() < Duration::from_secs(60), "edits wait");
            std::thread::sleep(Duration::from_millis(1));
        }
        mailboxes[0].post(Box::new(|desk| desk.order(Order::Stop)));
    });
    let (account, unlike) = ran(job, &ports);
    editor.join().unwrap();
    assert!(account.errors.is_empty(), "{:?}", account.errors);
    assert!(account.read > 0 && unlike.is_empty(), "{unlike:?}");
    // Each at one time on all workers, in the order in which they were asked for.
    let moments = moments.lock().unwrap();
    let mut by_edit: Vec<Vec<u64>> = vec![Vec::new(); 300];
    moments
        .iter()
        .for_each(|(n, now)| by_edit[*n as usize].push(*now));
    assert!(
        by_edit
            .iter()
            .all(|m| m.len() == workers && m.iter().all(|t| *t == m[0]))
    );
    assert!(by_edit.windows(2).all(|w| w[0][0] <= w[1][0]));
}

/// More workers than processors, and a ring that goes round while most of them wait for one.
#[test]
fn a_worker_that_falls_behind_ends_the_run_with_the_reason() {
    let function = replicated("ddos", 8).unwrap();
    let ports = device("");
    let job = Job {
        loops: Some(2000),
        rows: 2,
        ..Job::of(&function, &ports).unwrap()
    };
    let account = job.open(&ports, &STOP).unwrap().run(&STOP, &mut |_| {});
    let account = account.unwrap();
    let stalled = |e: &millrace_dataplane::account::Failure| e.error.contains("has stalled: row");
    assert!(account.errors.iter().any(stalled), "{:?}", account.errors);
    let help = &account.errors.iter().find(|e| stalled(e)).unwrap().help;
    assert!(help.contains("--history-rows"), "{help}");
    // It ended before the packets did, and each one read has a fate.
    assert!(account.read < 2000 * 1619 && account.aborted > 0);
    let fates = account.forwarded + account.dropped + account.passed + account.aborted;
    assert_eq!(fates + account.consumed, account.read);
}

#[test]
fn what_replication_cannot_serve_is_refused_by_name() {
    let refused = |name: &str| {
        let error = replicated(name, 2).err().unwrap();
        assert_eq!(error.kind, Kind::No);
        (error.what, error.help.unwrap())
    };
    let (what, help) = refused("nat");
    assert!(what.contains("nat.c:"), "{what}");
    assert!(
        what.contains("forwards: one instruction reaches several kinds"),
        "{what}"
    );
    assert!(help.contains("--history"), "{help}");
    let (what, _) = refused("router");
    assert!(
        what.contains("discovery.h:") && what.contains("borders"),
        "{what}"
    );
    let (what, help) = refused("nop");
    assert!(
        what.contains("nothing to replicate") && help.contains("any packet"),
        "{what}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shown.c");
    std::fs::write(&path, SHOWN).unwrap();
    let shown = replicated_at(path.to_str().unwrap(), 2).err().unwrap();
    assert!(
        shown
            .what
            .contains("each core has its own of an object for records"),
        "{}",
        shown.what
    );
    let many = replicated("ddos", 65).err().unwrap();
    assert!(many.what.contains("at most 64 workers"), "{}", many.what);
}

/// A verdict by how far a ring buffer is, which each worker has for itself.
const SHOWN: &str = "#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
\t__uint(type, BPF_MAP_TYPE_HASH);
\t__uint(max_entries, 64);
\t__type(key, __u32);
\t__type(value, __u64);
} counts SEC(\".maps\");

struct {
\t__uint(type, BPF_MAP_TYPE_RINGBUF);
\t__uint(max_entries, 1 << 16);
} ring SEC(\".maps\");

SEC(\"xdp\")
int shown(struct xdp_md *ctx)
{
\t__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

\tif (data + 34 > end)
\t\treturn XDP_PASS;
\t__u32 key = data[26];
\t__u64 one = 1, record = key, *count = bpf_map_lookup_elem(&counts, &key);
\tif (count)
\t\t*count += 1;
\telse
\t\tbpf_map_update_elem(&counts, &key, &one, BPF_ANY);
\t__u64 at = bpf_ringbuf_query(&ring, BPF_RB_PROD_POS);
\tbpf_ringbuf_output(&ring, &record, sizeof(record), 0);
\treturn at & 16 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC(\"license\") = \"GPL\";
";

#[test]
fn ports_without_a_sequencer_are_refused() {
    let function = replicated("ddos", 2).unwrap();
    let opened = |ports: &Ports| {
        let job = Job::of(&function, ports).unwrap();
        job.open(ports, &STOP).err().unwrap().what
    };
    let mut two = device("");
    let other = two.inputs[0].replace("talk.pcap", "./talk.pcap");
    two.inputs.push(other);
    assert!(opened(&two).contains("is a second device"));
    // One device numbers its packets by itself, and another port has to be numbered by a core.
    let mut beside = device("");
    beside.inputs.push("afpacket:lo".into());
    assert!(opened(&beside).contains("is a second device"));
    let key = "6d5a".repeat(20);
    let hashed = device(&format!("&key={key}"));
    assert!(
        opened(&hashed).contains("packets are sprayed"),
        "{}",
        opened(&hashed)
    );
}
