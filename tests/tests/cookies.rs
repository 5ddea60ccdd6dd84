//! SYN cookies and metadata: emitted code and the interpreter, called with the same arguments, give the same
//! results. The kernel's cookies depend on a secret, and its test run has no metadata: with it are compared
//! errors, segment sizes, and that each takes its own cookies and nobody else's.

use millrace_object::program::{FunctionId, Role};
use millrace_reference::{End, Machine};
use millrace_tests::command::root;
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Kernel, unavailable};
use millrace_tests::random::Random;

/// Where in the frame of tests/programs/cookies.c its fields begin.
const LENGTH: usize = 14;
const WHICH: usize = 15;
const RESULT: usize = 16;
const NUMBER: usize = 24;
const IP: usize = 32;
const TCP: usize = 72;
const OPTIONS: usize = 92;
const END: usize = 136; // as the structure is aligned

const EINVAL: i64 = -22;
const EACCES: i64 = -13;
const EOPNOTSUPP: i64 = -95;

fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())
}

/// A SYN of IPv4 (0) or IPv6 (1) with options; sometimes the length is not the header's own.
fn syn(random: &mut Random, six: u8) -> Vec<u8> {
    const BYTES: [u8; 12] = [0, 1, 2, 4, 5, 180, 179, 2, 4, 3, 35, 40];
    let mut frame: Vec<u8> = (0..END).map(|_| random.below(256) as u8).collect();
    let length = 20 + 4 * random.below(11);
    for byte in &mut frame[OPTIONS..] {
        *byte = BYTES[random.below(BYTES.len())];
    }
    if random.below(4) > 0 && length >= 24 {
        let size: u16 = [0, 1, 535, 536, 1300, 1420, 1440, 1460, 8940, 9000][random.below(10)];
        frame[OPTIONS..OPTIONS + 4].copy_from_slice(&[2, 4, (size >> 8) as u8, size as u8]);
    }
    frame[TCP + 12] = (length as u8 / 4) << 4;
    let wrong = random.below(8) == 0;
    frame[LENGTH] = if wrong { random.below(61) } else { length } as u8;
    frame[WHICH] = six;
    frame
}

/// The result that the program left in its frame.
fn result(frame: &[u8]) -> i64 {
    i64::from_le_bytes(frame[RESULT..RESULT + 8].try_into().unwrap())
}

/// The ACK that answers a SYN whose cookie is this.
fn ack(syn: &[u8], cookie: i64) -> Vec<u8> {
    let mut frame = syn.to_vec();
    let sequence = word(&frame, TCP + 4).wrapping_add(1);
    frame[TCP + 4..TCP + 8].copy_from_slice(&sequence.to_be_bytes());
    frame[TCP + 8..TCP + 12].copy_from_slice(&(cookie as u32).wrapping_add(1).to_be_bytes());
    frame[WHICH] += 2;
    frame
}

#[test]
fn cookies_are_built_as_the_kernels() {
    if let Some(why) = unavailable() {
        println!("skipped: comparison with the kernel, {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let source = root().join("tests/programs/cookies.c");
    let mut emitted = Emitted::of(&cache.path().join("cache"), &source, 1, &[]).unwrap();
    emitted.select("cookies").unwrap();
    let kernel = Kernel::load_public(&emitted.object, &["cookies".to_owned()], 0);
    let mut kernel = kernel.unwrap().program("cookies");
    let mut both = |ours: &[u8], theirs: &[u8]| {
        let ours = result(&emitted.run(ours).unwrap().packet);
        (ours, result(&kernel.run(theirs).unwrap().packet))
    };
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut taken, mut malformed, mut others) = (0, 0, 0);
    let mut sizes = std::collections::BTreeSet::new();
    for _ in 0..4000 {
        let six = random.below(2) as u8;
        let frame = syn(&mut random, six);
        let (ours, theirs) = both(&frame, &frame);
        if ours < 0 || theirs < 0 {
            assert_eq!(ours, theirs, "{frame:02x?}");
            malformed += 1;
            continue;
        }
        assert_eq!(ours >> 32, theirs >> 32, "segment size: {frame:02x?}");
        sizes.insert((six, ours >> 32));
        let answers = (ack(&frame, ours), ack(&frame, theirs));
        assert_eq!(both(&answers.0, &answers.1), (0, 0), "{frame:02x?}");
        taken += 1;
        // Of another connection, by a bit of its ports or addresses: refused by both, but for one in 2^29.
        let addresses = if six == 1 { 8..40 } else { 12..20 };
        let at = match random.below(2) {
            0 => TCP + random.below(4),
            _ => IP + addresses.start + random.below(addresses.len()),
        };
        let bit = 1 << random.below(8);
        let turned = |mut frame: Vec<u8>| {
            frame[at] ^= bit;
            frame
        };
        let answers = (turned(answers.0), turned(answers.1));
        assert_eq!(both(&answers.0, &answers.1), (EACCES, EACCES), "{at}");
        // Each other's.
        let answers = (ack(&frame, theirs), ack(&frame, ours));
        others += u32::from(both(&answers.0, &answers.1) == (EACCES, EACCES));
    }
    println!(
        "{taken} cookies taken by each, {malformed} headers malformed for both, sizes {sizes:?}"
    );
    assert!(taken > 1000 && malformed > 100 && others == taken);
    assert_eq!(sizes.len(), 8, "{sizes:?}");
}

#[test]
fn cookies_are_the_interpreters() {
    let cache = tempfile::tempdir().unwrap();
    let source = root().join("tests/programs/cookies.c");
    let mut emitted = Emitted::of(&cache.path().join("cache"), &source, 1, &[]).unwrap();
    let program = emitted.program.clone();
    let mut both = |frame: &[u8]| {
        let name = if frame[WHICH] < 4 {
            "cookies"
        } else {
            "metadata"
        };
        let entry = program.functions.iter().position(|f| f.name == name);
        let entry = FunctionId(entry.unwrap());
        emitted.select(name).unwrap();
        let ours = emitted.run(frame).unwrap().packet;
        let mut machine = Machine::exact(&program);
        machine.packet(frame, 0, 0);
        let end = machine.run(entry, Role::Xdp, 100_000).unwrap();
        assert_eq!(end, End::Verdict(2), "{frame:02x?}");
        assert_eq!(machine.packet_bytes(), ours, "{frame:02x?}");
        let field = |at: usize| i64::from_le_bytes(ours[at..at + 8].try_into().unwrap());
        (field(RESULT), field(NUMBER))
    };
    let mut random = Random(0x5851_f42d_4c95_7f2d);
    let (mut taken, mut refused, mut malformed) = (0, 0, 0);
    let mut sizes = std::collections::BTreeSet::new();
    for _ in 0..4000 {
        let six = random.below(2) as u8;
        let mut frame = syn(&mut random, six);
        let cookie = both(&frame).0;
        if cookie == EINVAL {
            malformed += 1;
            continue;
        }
        assert!(cookie >= 0, "{cookie}");
        sizes.insert((six, cookie >> 32));
        // The ACK that answers, and one with a bit turned in addresses, ports or numbers.
        let sequence = word(&frame, TCP + 4).wrapping_add(1);
        frame[TCP + 4..TCP + 8].copy_from_slice(&sequence.to_be_bytes());
        frame[TCP + 8..TCP + 12].copy_from_slice(&(cookie as u32).wrapping_add(1).to_be_bytes());
        frame[WHICH] += 2;
        assert_eq!(both(&frame).0, 0, "{frame:02x?}");
        taken += 1;
        let at = if random.below(2) == 0 {
            TCP + random.below(12)
        } else {
            IP + 12 + random.below(8)
        };
        frame[at] ^= 1 << random.below(8);
        refused += u32::from(both(&frame).0 == EACCES);
    }
    println!(
        "{taken} cookies taken, {refused} changed ones refused, {malformed} headers malformed, sizes {sizes:?}"
    );
    assert!(taken > 1000 && refused > taken * 9 / 10 && malformed > 100);
    assert_eq!(sizes.len(), 8, "{sizes:?}");

    let mut frame = vec![0; END];
    // What is not there leaves the variables as they were.
    for (which, expected) in [
        (4, (0, 0)),
        (5, (EOPNOTSUPP, 1 << 32 | 2)),
        (6, (EOPNOTSUPP, 4 << 32 | 5)),
    ] {
        frame[WHICH] = which;
        assert_eq!(both(&frame), expected, "{which}");
    }
}
