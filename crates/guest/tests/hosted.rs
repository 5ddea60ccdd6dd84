//! Guests of the tests' own: packets in and fates out, threads, policy, faults, and what cannot be hosted.

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use common::{Caught, Packets, compile};
use millrace_guest::{Over, describe};

#[test]
fn a_guest_sees_every_byte_and_decides() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut packets = Packets::read();
    let expected = format!("{} packets, sum {}\n", packets.len(), packets.sum());

    let word = |how: &str| format!("guest:{} {how}", program.display());
    let mut first = Caught::start(dir.path(), &word("count")).unwrap();
    let mut second = Caught::start(dir.path(), &word("count")).unwrap();
    let mut dropper = Caught::start(dir.path(), &word("drop")).unwrap();
    let mut rest = Caught::start(dir.path(), &word("count")).unwrap();
    let slots: std::collections::BTreeSet<u32> = [&first, &second, &dropper, &rest]
        .iter()
        .map(|c| c.guest.slot())
        .collect();
    assert_eq!(slots.len(), 4);
    let (_, on) = packets.play(&mut [
        &mut first.guest,
        &mut second.guest,
        &mut dropper.guest,
        &mut rest.guest,
    ]);
    assert_eq!(on, packets.len() / 2);
    for caught in [first, second] {
        let (over, printed) = caught.finish();
        assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
        assert_eq!(printed, expected);
    }
    assert_eq!(dropper.finish().1, expected);
    assert!(rest.finish().1.starts_with(&format!("{on} packets")));
}

/// The thread that asks for packets is not the one that was started; the first waits for it and tells the result.
#[test]
fn a_thread_of_the_guests_own_gets_the_packets() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut packets = Packets::read();
    let mut caught =
        Caught::start(dir.path(), &format!("guest:{} thread", program.display())).unwrap();
    packets.play(&mut [&mut caught.guest]);
    let (over, printed) = caught.finish();
    assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
    assert_eq!(
        printed,
        format!("{} packets, sum {}\n", packets.len(), packets.sum())
    );
}

/// Each fault ends its guest in the second burst; packets go on, and the guests before and behind it see all.
#[test]
fn a_fault_ends_its_guest_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    common::faults(dir.path(), &program, &mut Packets::read());
}

#[test]
fn a_guest_that_wastes_descriptors_harms_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut packets = Packets::read();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    for how in ["descriptors", "close-all"] {
        let mut caught =
            Caught::start(dir.path(), &format!("guest:{} {how}", program.display())).unwrap();
        packets.play(&mut [&mut caught.guest]);
        let (over, printed) = caught.finish();
        assert!(matches!(over, Over::Exit(0)), "{how}: {}", describe(&over));
        // Without descriptors it cannot tell what it saw.
        assert_eq!(printed.is_empty(), how == "close-all", "{how}: {printed}");
    }
    println!("a line on the host's own output");
    // Guests of other tests in this process come and go.
    let deadline = Instant::now() + Duration::from_secs(60);
    while open() > before + 64 {
        assert!(
            Instant::now() < deadline,
            "descriptors leak: {} and {before} before",
            open()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_a_guest_may_not_do_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    std::os::unix::fs::symlink("/proc/self/mem", dir.path().join("link")).unwrap();
    let word = format!("guest,send=127.0.0.1:2055:{} ask", program.display());
    let mut caught = Caught::start(dir.path(), &word).unwrap();
    Packets::made(10).play(&mut [&mut caught.guest]);
    let notes: Vec<String> = caught
        .guest
        .notes()
        .into_iter()
        .map(|(note, _)| note)
        .collect();
    let (_, printed) = caught.finish();
    let expected = [
        ("fork", libc::EPERM),
        ("execve", libc::EPERM),
        ("socket", libc::EACCES),
        ("connect", libc::ENETUNREACH),
        ("connect-udp", libc::ENETUNREACH),
        ("connect-allowed", 0),
        ("connect-unix", libc::ENOENT),
        ("send-udp", libc::ENETUNREACH),
        ("send-raw", libc::ENETUNREACH),
        ("accept", libc::EAGAIN),
        ("query-other", libc::ENODEV),
        ("query-set", libc::EPERM),
        ("query-host", libc::EFAULT),
        ("generic", libc::EPROTONOSUPPORT),
        ("ring", libc::EINVAL),
        ("send-ring", libc::ENOPROTOOPT),
        ("receive-raw", libc::EOPNOTSUPP),
        ("pair-ip", libc::EAFNOSUPPORT),
        ("pass-descriptor", libc::EINVAL),
        ("no-socket", libc::ENOTSOCK),
        ("receive-host", libc::EFAULT),
        ("receive-from-host", libc::EFAULT),
        ("host-vector", libc::EFAULT),
        ("host-option", libc::EFAULT),
        ("host-event", libc::EFAULT),
        ("host-timer", libc::EFAULT),
        ("host-times", libc::EFAULT),
        ("host-lock", libc::EFAULT),
        ("host-path", libc::EFAULT),
        ("host-signals", libc::EFAULT),
        ("host-data", 0),
        ("kill", libc::EPERM),
        ("shadow", libc::EACCES),
        ("mem", libc::EACCES),
        ("outside", libc::EACCES),
        ("dots", libc::EACCES),
        ("inside", 0),
        ("wx", libc::EACCES),
        ("foreign", libc::EINVAL),
        ("write-host", libc::EFAULT),
        ("wake", 0),
        ("wake-host", libc::EFAULT),
        ("io_uring", libc::EPERM),
        ("pkey", libc::EPERM),
        ("vm-write", libc::EPERM),
        ("vm-read", libc::EPERM),
        ("ptrace", libc::EPERM),
        ("task-mem", libc::EACCES),
        ("link-mem", libc::EACCES),
        ("protect-wx", libc::EACCES),
        ("protect-host", libc::EINVAL),
        ("unmap-host", libc::EINVAL),
        ("userfaultfd", libc::ENOSYS),
        ("bpf", libc::ENOSYS),
        ("filter", libc::EPERM),
        ("terminal", libc::EACCES),
        ("unknown", libc::ENOSYS),
    ];
    for (what, errno) in expected {
        assert!(
            format!("\n{printed}").contains(&format!("\n{what} {errno}\n")),
            "{what}: {printed}"
        );
    }
    assert!(dir.path().join("inside.txt").exists());
    assert!(
        notes.iter().any(|n| n == "reading /etc/shadow was denied"),
        "{notes:?}"
    );
}

/// One that neither fails nor ends when packets do.
#[test]
fn a_guest_that_does_not_end_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut packets = Packets::read();
    let mut caught =
        Caught::start(dir.path(), &format!("guest:{} deaf", program.display())).unwrap();
    packets.play(&mut [&mut caught.guest]);
    let begin = Instant::now();
    let (over, _) = caught.finish();
    assert!(
        matches!(over, Over::Removed | Over::Stuck(_)),
        "{}",
        describe(&over)
    );
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn what_cannot_be_hosted_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    compile(
        dir.path(),
        "fixed",
        &["-no-pie", "-Wl,-Ttext-segment=0x20000000"],
    );
    compile(dir.path(), "static", &["-static"]);
    compile(dir.path(), "static-pie", &["-static-pie"]);
    // What the Go linker leaves in its programs: a note that is named so.
    compile(dir.path(), "go", &["-static", "-DGO_NOTE"]);
    std::fs::write(path("empty"), "").unwrap();
    let setuid = compile(dir.path(), "setuid", &[]);
    std::fs::set_permissions(&setuid, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let good = compile(dir.path(), "good", &[]);
    let bytes = std::fs::read(&good).unwrap();
    std::fs::write(path("script"), "#!/bin/sh\n").unwrap();
    std::fs::write(path("text"), "hello").unwrap();
    std::fs::write(path("cut"), &bytes[..4000]).unwrap();
    let changed = |name: &str, at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        std::fs::write(path(name), bytes).unwrap();
    };
    // EI_CLASS and e_machine.
    changed("narrow", 4, 1);
    changed("arm", 18, 183);
    for (name, what) in [
        ("fixed", "no PIE"),
        ("static", "linked statically"),
        ("static-pie", "linked statically"),
        ("go", "a program of Go's"),
        ("empty", "not an ELF file"),
        ("setuid", "set-user-ID"),
        ("script", "a script"),
        ("text", "not an ELF file"),
        ("cut", "beyond the end"),
        ("narrow", "32-bit"),
        ("arm", "another processor"),
    ] {
        let Err(error) = Caught::start(dir.path(), &format!("guest:{}", path(name).display()))
        else {
            panic!("{name} was started");
        };
        assert!(error.to_string().contains(what), "{name}: {error}");
        assert!(!error.help().is_empty());
    }
    for (how, what) in [
        ("early", "status 5"),
        ("early-null", "a null pointer"),
        (
            "early-fork",
            "status 6; a process of its own (fork) was denied",
        ),
        ("forks", "it works in several processes"),
        ("early-exec", "status 7; execve was denied"),
        ("never-busy", "has not asked"),
        ("never", "has not asked"),
    ] {
        let word = format!("guest:{} {how}", good.display());
        let limit = Duration::from_millis(500);
        let started = Caught::with(dir.path(), &word, |spec| {
            spec.ready = if how.starts_with("never") {
                limit
            } else {
                spec.ready
            }
        });
        let Err(error) = started else {
            panic!("{how} asked for packets")
        };
        assert!(error.to_string().contains(what), "{how}: {error}");
    }
}

/// Headers that lie are refused, or are harmless: nothing of the host's is mapped over.
#[test]
fn headers_that_lie_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let bytes = std::fs::read(&program).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let slot = millrace_guest::slot::Slot::reserve(Some(4010)).unwrap();
    let mut refused = 0;
    for round in 0..400 {
        let mut bad = bytes.clone();
        // The ELF header and the program headers.
        for _ in 0..1 + round % 4 {
            bad[4 + draw(0x40 + 13 * 56)] = draw(256) as u8;
        }
        let path = dir.path().join("bad");
        std::fs::write(&path, bad).unwrap();
        let range = 0x2000_0000_0000..0x2002_0000_0000;
        let mut space = millrace_guest::space::Space::new(range, 1 << 30, false);
        refused += usize::from(millrace_guest::load::load(&path, &slot, &mut space).is_err());
    }
    assert!(refused > 50, "{refused} of 400");
}

/// One at a time: it lies where it was linked to, below 4 GiB, and all else of it in its slot.
#[test]
fn a_program_at_fixed_addresses_is_hosted_beside_others() {
    let dir = tempfile::tempdir().unwrap();
    let fixed = compile(dir.path(), "fixed", &["-no-pie"]);
    let free = compile(dir.path(), "free", &[]);
    let mut packets = Packets::read();
    let expected = format!("{} packets, sum {}\n", packets.len(), packets.sum());
    for how in ["count", "thread"] {
        let word = format!("guest:{} {how}", fixed.display());
        let mut first = Caught::start(dir.path(), &word).unwrap();
        let Err(error) = Caught::start(dir.path(), &word) else {
            panic!("two programs at the same addresses");
        };
        let told = format!(
            "(no PIE), and the guest in slot {} has them",
            first.guest.slot()
        );
        assert!(error.to_string().contains(&told), "{error}");
        let mut other =
            Caught::start(dir.path(), &format!("guest:{} count", free.display())).unwrap();
        packets.play(&mut [&mut first.guest, &mut other.guest]);
        let error = first.guest.snapshot(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("no PIE"), "{error}");
        for caught in [first, other] {
            let (over, printed) = caught.finish();
            assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
            assert_eq!(printed, expected);
        }
    }
    // A fault in it is its own, and is named by file and offset.
    let word = format!("guest:{} null", fixed.display());
    let mut faulty = Caught::start(dir.path(), &word).unwrap();
    packets.play(&mut [&mut faulty.guest]);
    let said = describe(&faulty.finish().0);
    assert!(
        said.contains("a null pointer") && said.contains("/fixed+0x"),
        "{said}"
    );
}

#[test]
fn a_missing_library_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("libmillracetest.so");
    std::fs::write(
        dir.path().join("empty.c"),
        "int millrace_test(void) { return 1; }",
    )
    .unwrap();
    let built = std::process::Command::new("cc")
        .args(["-shared", "-o"])
        .args([&library, &dir.path().join("empty.c")])
        .status()
        .unwrap();
    assert!(built.success());
    let program = compile(
        dir.path(),
        "needs",
        &[
            "-Wl,--no-as-needed",
            "-L",
            dir.path().to_str().unwrap(),
            "-lmillracetest",
        ],
    );
    std::fs::remove_file(library).unwrap();
    let Err(error) = Caught::start(dir.path(), &format!("guest:{} count", program.display()))
    else {
        panic!("it was started")
    };
    assert!(
        error.to_string().contains("a library is missing"),
        "{error}"
    );
}

/// What a program of its own would get from the system, and a guest from the host.
#[test]
fn a_guest_without_terminal_or_user_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let mut packets = Packets::made(100);
    for (how, told) in [
        ("user", "user 0, then 65534\n"),
        ("terminal", "a terminal 0, input 0\n"),
    ] {
        let word = format!("guest:{} {how}", program.display());
        let mut caught = Caught::start(dir.path(), &word).unwrap();
        packets.play(&mut [&mut caught.guest]);
        let (over, printed) = caught.finish();
        assert!(matches!(over, Over::Exit(0)), "{how}: {}", describe(&over));
        assert!(printed.starts_with(told), "{how}: {printed}");
        assert!(printed.contains("100 packets"), "{how}: {printed}");
    }
}

/// A heap that is there before the program begins spares it the page faults of growing.
#[test]
fn a_heap_that_is_there_spares_page_faults() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    let faults = |options: &str| -> u64 {
        let word = format!("guest,{options}:{} grow", program.display());
        let mut caught = Caught::start(dir.path(), &word).unwrap();
        let mut packets = Packets::made(2000);
        let (before, begin) = (common::page_faults(), Instant::now());
        packets.play(&mut [&mut caught.guest]);
        let after = common::page_faults();
        println!("{options}: {:?} for 2000 packets", begin.elapsed());
        let (over, _) = caught.finish();
        assert!(matches!(over, Over::Exit(0)), "{}", describe(&over));
        after - before
    };
    let (grown, ready) = (faults("memory=256"), faults("memory=256,heap=64"));
    println!("page faults of 32 MB: {grown}, with a heap of 64 MiB: {ready}");
    // 2000 blocks of four pages each.
    assert!(grown > 10 * ready.max(1), "{grown} and {ready}");
}

/// What becomes of packets when a guest has failed is what was asked for, and counted.
#[test]
fn packets_pass_a_failed_guest_by_or_are_dropped() {
    use millrace_dataplane::worker::foreign::Foreign;

    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), "receiver", &[]);
    for (failing, dropped, told) in [
        ("pass", 0, "68 packets went past it"),
        ("drop", 68, "68 packets were dropped"),
    ] {
        let word = format!("guest,failing={failing}:{} null", program.display());
        let caught = Caught::start(dir.path(), &word).unwrap();
        let mut element = millrace_guest::Element::new(caught.guest);
        let mut packets = Packets::made(100);
        let mut count = 0;
        packets.bursts(|burst| {
            // SAFETY: the packets lie in `packets`.
            #[allow(unsafe_code)]
            unsafe {
                element.burst(burst);
            };
            count += burst.iter().filter(|p| p.fate != 0).count();
        });
        assert_eq!(count, dropped, "{failing}");
        let (what, help) = element.finish().failure.unwrap();
        assert!(
            what.contains("a null pointer") && what.contains(told),
            "{what}"
        );
        assert!(!help.is_empty());
    }
}
