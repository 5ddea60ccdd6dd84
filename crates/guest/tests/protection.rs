//! Guests that write where they may not: into the host, into one another. Checked on a processor with protection keys,
//! which QEMU has if this machine does not; and that it is told where there are none.

use crate::common;
use crate::machine;

use std::path::{Path, PathBuf};

use common::{Caught, Packets, compile};
use millrace_guest::protect::{self, Protection};
use millrace_guest::{Over, describe};

/// A guest that does something at an address when its 40th packet has come, between two that only count.
struct Row {
    before: Caught,
    middle: Caught,
    behind: Caught,
}

impl Row {
    fn start(folder: &Path, program: &Path, how: &str, options: &str) -> Self {
        let start = |options: &str, how: &str| {
            let word = format!("guest{options}:{} {how}", program.display());
            Caught::start(folder, &word).unwrap()
        };
        Self {
            before: start("", "count"),
            middle: start(options, how),
            behind: start("", "thread"),
        }
    }

    /// Plays packets through the row; why the one in the middle ended, and that the others saw all.
    fn play(mut self, packets: &mut Packets) -> Over {
        let expected = format!("{} packets, sum {}\n", packets.len(), packets.sum());
        let row = &mut [
            &mut self.before.guest,
            &mut self.middle.guest,
            &mut self.behind.guest,
        ];
        let (_, on) = packets.play(row);
        assert_eq!(on, packets.len());
        let (over, _) = self.middle.finish();
        for caught in [self.before, self.behind] {
            assert_eq!(caught.finish().1, expected);
        }
        over
    }
}

/// What there is to see on a processor with keys.
fn guarded(folder: &Path, program: &Path) {
    let mut packets = Packets::made(100);
    let own = Box::new(0x5a5a_u64);
    let at = std::ptr::from_ref(&*own).addr();
    // Read anew each time: if anybody writes there, it is the guest.
    let seen = || std::hint::black_box(&own).to_le_bytes();

    let row = Row::start(folder, program, &format!("poke {at:#x}"), "");
    assert!(
        matches!(row.middle.guest.protection(), Protection::Key(..)),
        "{}",
        row.middle.guest.protection()
    );
    let said = describe(&row.play(&mut packets));
    assert!(said.contains("the host's memory"), "{said}");
    assert!(
        said.contains(&format!("{at:#x}")) && said.contains("/receiver+0x"),
        "{said}"
    );
    assert_eq!(seen(), 0x5a5a_u64.to_le_bytes());
    println!("a write into the host: {said}");

    for how in ["poke", "peek"] {
        let other = Caught::start(
            folder,
            &format!("guest,slot=77:{} count", program.display()),
        )
        .unwrap();
        let there = other.guest.port_address();
        let row = Row::start(folder, program, &format!("{how} {there:#x}"), "");
        let said = describe(&row.play(&mut packets));
        assert!(said.contains("the guest in slot 77"), "{how}: {said}");
        drop(other);
        println!("{how} in another guest: {said}");
    }
    read_by_call(folder, program, &mut packets);
    // Reading the host is allowed: the vDSO's data and what GS names are the host's.
    let row = Row::start(folder, program, &format!("peek {at:#x}"), "");
    assert!(matches!(row.play(&mut packets), Over::Exit(0)));

    common::faults(folder, program, &mut packets);
    println!("faults are caught with keys as without");
    crowd(folder, program, &mut packets);
}

/// The kernel has the rights to all keys: what it is asked to read must not be another guest's either.
fn read_by_call(folder: &Path, program: &Path, packets: &mut Packets) {
    let other = Caught::start(
        folder,
        &format!("guest,slot=77:{} count", program.display()),
    )
    .unwrap();
    let there = other.guest.port_address();
    let word = format!("guest:{} read-by-call {there:#x}", program.display());
    let mut asks = Caught::start(folder, &word).unwrap();
    packets.play(&mut [&mut asks.guest]);
    let (over, said) = asks.finish();
    assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
    let answers: Vec<_> = said.lines().filter(|l| !l.contains("packets")).collect();
    assert_eq!(answers.len(), 8, "{said}");
    let denied = format!(" {}", libc::EFAULT);
    assert!(answers.iter().all(|a| a.ends_with(&denied)), "{said}");
    println!("reads by call of another guest's memory: {answers:?}");
    drop(other);
}

/// More guests than there are keys: some share one, and are told so.
fn crowd(folder: &Path, program: &Path, packets: &mut Packets) {
    let word = format!("guest,memory=16:{} count", program.display());
    let mut guests: Vec<Caught> = (0..17)
        .map(|_| Caught::start(folder, &word).unwrap())
        .collect();
    let told: Vec<String> = guests
        .iter()
        .map(|g| g.guest.protection().to_string())
        .collect();
    assert!(told.iter().any(|t| t.contains("shared by 2")), "{told:?}");
    assert!(told.iter().any(|t| t.contains("of its own")), "{told:?}");
    let mut row: Vec<_> = guests.iter_mut().map(|g| &mut g.guest).collect();
    packets.play(&mut row);
    let expected = format!("{} packets, sum {}\n", packets.len(), packets.sum());
    for caught in guests {
        assert_eq!(caught.finish().1, expected);
    }
    println!("17 guests: {}", told.last().unwrap());
}

/// Runs in the machine that the test below boots.
#[test]
#[ignore = "runs in a machine with protection keys, which the other test boots"]
fn inside() {
    assert!(
        protect::available(),
        "this processor has no protection keys"
    );
    let program = std::env::var("MILLRACE_PROGRAMS").unwrap() + "/receiver";
    guarded(Path::new("/tmp"), &PathBuf::from(program));
}

#[test]
fn keys_keep_a_guest_out_of_the_host_and_of_other_guests() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    if protect::available() {
        return guarded(dir.path(), &program);
    }
    let Some(kernel) = machine::found() else {
        return;
    };
    let init = dir.path().join("init");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/init.c");
    let built = std::process::Command::new("cc")
        .args(["-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&init, &source])
        .status()
        .unwrap();
    assert!(built.success());
    let test = std::env::current_exe().unwrap();
    let mut files = machine::Files::default();
    for folder in ["/proc", "/tmp"] {
        files.folder(Path::new(folder));
    }
    files.file(Path::new("/init"), &init);
    files.file(Path::new("/test"), &test);
    files.file(Path::new("/programs/receiver"), &program);
    files.libraries(&[&test, &program]);
    let said = machine::boot(dir.path(), &kernel, files);
    println!("{said}");
    assert!(
        said.contains("1 passed; 0 failed") && said.contains("machine: status 0"),
        "{said}"
    );
}

/// Without keys a stray write is not caught, and that is what is told.
#[test]
fn without_keys_it_is_told_that_strays_are_not_caught() {
    if protect::available() {
        println!("skipped: this processor has protection keys");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let own = std::sync::atomic::AtomicU64::new(0x5a5a);
    let at = own.as_ptr().addr();
    let row = Row::start(dir.path(), &program, &format!("poke {at:#x}"), "");
    let told = row.middle.guest.protection();
    assert_eq!(told, Protection::None);
    assert!(told.to_string().contains("not caught"));
    assert!(matches!(row.play(&mut Packets::made(100)), Over::Exit(0)));
    assert_ne!(own.load(std::sync::atomic::Ordering::Relaxed), 0x5a5a);
}

/// With `isolate` a guest gets copies: what it does to them comes back, and the packets of another burst are gone.
#[test]
fn an_isolated_guest_changes_packets_of_the_current_burst_only() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut packets = Packets::made(100);
    let sum = packets.sum();
    let row = Row::start(dir.path(), &program, "scribble", ",isolate");
    let Row {
        mut before,
        mut middle,
        mut behind,
    } = row;
    packets.play(&mut [&mut before.guest, &mut middle.guest, &mut behind.guest]);
    // The first byte of each packet is one more than it was.
    assert_eq!(packets.sum(), sum + 100);
    let seen = |caught: Caught| caught.finish().1;
    assert_eq!(seen(before), format!("100 packets, sum {sum}\n"));
    assert_eq!(seen(behind), format!("100 packets, sum {}\n", sum + 100));
    // It looks at the last packet of the burst before, where that was, in every burst of fewer packets.
    assert!(seen(middle).contains("before 0\n"));
}
