//! Targets: hardware, the kernel, switches.

mod interfaces;
mod loads;
mod p4;
mod rows;
mod shard;
mod verilog;
mod xdp;

use std::path::{Path, PathBuf};

/// The paper's functions, with the slots of their golden captures for three cores (crates/cli/tests/sequence.rs).
pub const FUNCTIONS: &[(&str, u16)] = &[
    ("conntrack", 6),
    ("ddos", 12),
    ("heavyhitter", 9),
    ("portknock", 12),
    ("tokenbucket", 9),
];

/// The folder of the golden captures.
pub fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sequencer")
}

/// The records of a pcap file of this machine's byte order: bytes alone, the stamp in ns.
fn records(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let file = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let nanoseconds = word(0) == 0xa1b2_3c4d;
    assert!(nanoseconds || word(0) == 0xa1b2_c3d4, "{}", path.display());
    let (mut at, mut all) = (24, Vec::new());
    while at < file.len() {
        let part = u64::from(word(at + 4)) * if nanoseconds { 1 } else { 1000 };
        let bytes = word(at + 8) as usize;
        let time = u64::from(word(at)) * 1_000_000_000 + part;
        all.push((time, file[at + 16..at + 16 + bytes].to_vec()));
        at += 16 + bytes;
    }
    all
}

/// The packets that the golden captures are made of.
pub fn packets() -> Vec<(u64, Vec<u8>)> {
    records(&captures().join("traffic.pcap"))
}

/// One record of a sequenced capture.
#[derive(Clone)]
pub struct Carrier {
    pub core: u16,
    pub flags: u8,
    pub stamp: u64,
    /// the packet without its prefix
    pub packet: Vec<u8>,
    /// all of it
    pub whole: Vec<u8>,
}

/// The carriers of a sequenced capture.
pub fn carriers(path: &Path) -> Vec<Carrier> {
    let mut all = records(path).into_iter().map(|(_, bytes)| bytes);
    let form = all.next().unwrap();
    let (slots, row) = (usize::from(form[15]), usize::from(form[16]));
    let prefix = 34 + slots.div_ceil(8) + slots * row;
    let carrier = |whole: Vec<u8>| Carrier {
        core: u16::from_be_bytes([whole[4], whole[5]]),
        flags: whole[14] & 15,
        stamp: u64::from_be_bytes(whole[26..34].try_into().unwrap()),
        packet: whole[prefix..].to_vec(),
        whole,
    };
    all.map(carrier).collect()
}

/// Names and lines are the object's, which somebody else wrote: they stay within comments.
#[test]
fn names_of_an_object_are_no_code() {
    const CODE: &str = "*/ int evil; /*\nendmodule";
    let bench = crate::support::Bench::new();
    let mut program = crate::support::nf::load(&bench, "portknock");
    program.name = CODE.to_owned();
    for function in &mut program.functions {
        function.name = CODE.to_owned();
        for line in function.lines.iter_mut().flatten() {
            line.text = CODE.into();
        }
    }
    for object in &mut program.objects {
        object.name = CODE.to_owned();
    }
    for target in millrace_emit::target::TARGETS {
        for file in verilog::files(*target, &program, 3, 12) {
            assert!(!file.text.contains("*/ int evil"), "{}", file.text);
            let lines = |l: &&str| l.trim_start().starts_with("endmodule");
            let own = file.text.lines().filter(lines).count();
            let modules = file.text.lines().filter(|l| l.starts_with("module "));
            assert_eq!(own, modules.count(), "{}", file.text);
        }
    }
}
