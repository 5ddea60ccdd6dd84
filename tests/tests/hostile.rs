//! Bad input through the front door: a clear error and exit code 2, never a panic, and what was
//! written stays intact.

use std::path::Path;
use std::process::{Command, Stdio};

use millrace_tests::command::{millrace, root, run};

/// Exit code 2, `error:` first, a way out, and no trace of a panic.
fn refused(command: &mut Command) -> String {
    let output = run(command);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{command:?}:\n{text}");
    assert!(text.contains("error: "), "{command:?}:\n{text}");
    assert!(
        !text.contains("panicked") && !text.contains("RUST_BACKTRACE"),
        "{command:?}:\n{text}"
    );
    text
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn hostile_objects_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = root().join("nfs/portknock/portknock.c");
    let object = folder.path().join("good.o");
    let compiled = Command::new("clang-19")
        .args("-target bpf -mcpu=v4 -O2 -g -I/usr/include/x86_64-linux-gnu -c".split(' '))
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status()
        .unwrap();
    assert!(compiled.success());
    let good = std::fs::read(&object).unwrap();

    let mut cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty.o", vec![]),
        ("text.o", b"int main() { return 0; }\n".to_vec()),
        ("magic.o", b"\x7fELF".to_vec()),
        ("zeros.o", vec![0; 1 << 16]),
    ];
    for cut in [16, 64, good.len() / 4, good.len() / 2, good.len() - 1] {
        cases.push(("cut.o", good[..cut].to_vec()));
    }
    let mut sections_beyond = good;
    sections_beyond[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
    cases.push(("sections-beyond.o", sections_beyond));
    for (name, bytes) in cases {
        let path = write(folder.path(), name, &bytes);
        refused(millrace().arg("check").arg(&path));
    }
}

#[test]
fn hostile_captures_are_refused_and_what_came_before_counts() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pcap");
    let good = std::fs::read(root().join("captures/talk.pcap")).unwrap();
    let mut giant = good[..24].to_vec();
    giant.extend_from_slice(&[
        0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f,
    ]);
    for (name, bytes) in [
        ("empty.pcap", &b""[..]),
        ("noise.pcap", &[0x5a; 4096][..]),
        ("header.pcap", &good[..20]),
        ("cut.pcap", &good[..good.len() - 7]),
        ("giant.pcap", &giant),
        (
            "cut.pcapng",
            &b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00"[..],
        ),
    ] {
        let path = write(folder.path(), name, bytes);
        let text = refused(
            millrace()
                .args(["run", "nop", "--in"])
                .arg(&path)
                .arg("--out")
                .arg(&out),
        );
        assert!(
            text.contains(name),
            "the error does not name the file:\n{text}"
        );
    }
}

/// A function that says by its verdict whether the clock is negative as a signed number: 1 (drop) if it is not. The proof
/// knows that it is not, and relies on it in memory accesses.
const CLOCK: &str = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
    SEC(\"xdp\") int clock(struct xdp_md *ctx)\n\
    { __u64 t = bpf_ktime_get_ns(); asm volatile(\"%0 >>= 63\" : \"+r\"(t)); return XDP_DROP + t; }\n";

#[test]
fn no_test_and_no_capture_says_a_time_that_the_clock_never_has() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path(), "clock.c", CLOCK.as_bytes());
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    let case = "# The latest time there is.\nports 2\nat 18446744073s\n0: eth / ip 10.0.0.1 > 10.0.0.2 / udp 1 > 2\n  -> drop\n";
    write(&folder.path().join("tests"), "late.pkt", case.as_bytes());
    let output = run(millrace().arg("test").arg(&source));
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("1 passed"), "{said}");

    // A stamp of pcapng whose unit is the second: 2^64 - 1 of them.
    let section = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &length[..], body, &length].concat()
    };
    let capture = [
        section(
            0x0a0d_0d0a,
            &[
                0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
            ],
        ),
        section(
            1,
            &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        section(
            6,
            &[
                &[0; 4][..],
                &[255; 8],
                &[60, 0, 0, 0, 60, 0, 0, 0],
                &[0; 60],
            ]
            .concat(),
        ),
    ];
    let capture = write(folder.path(), "late.pcapng", &capture.concat());
    let output = run(millrace()
        .args(["run", "--json"])
        .arg(&source)
        .arg("--in")
        .arg(capture));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        said.contains("\"dropped\": 1") || said.contains("\"dropped\":1"),
        "{said}"
    );
}

/// Runs a command with little memory and little time: what reads without a bound fails.
fn bounded(arguments: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.args(["20", "prlimit", "--as=4294967296"]);
    command.arg(millrace().get_program()).args(arguments);
    refused(&mut command)
}

#[test]
fn a_file_that_never_ends_is_read_to_a_bound() {
    let nf = root().join("nfs/nop/nop.c");
    let nf = nf.to_str().unwrap();
    let capture = root().join("captures/talk.pcap");
    let capture = capture.to_str().unwrap();
    let maps = root().join("nfs/lb/lb.c");
    let maps = maps.to_str().unwrap();
    assert!(bounded(&["check", "/dev/zero"]).contains("67108864 bytes"));
    assert!(bounded(&["plan", "/dev/zero"]).contains("67108864 bytes"));
    assert!(bounded(&["run", "/dev/zero", "--in", capture]).contains("67108864 bytes"));
    let text = bounded(&["run", nf, "--in", capture, "--routes", "/dev/zero"]);
    assert!(text.contains("bytes"), "{text}");
    let text = bounded(&["run", maps, "--in", capture, "--map", "backends=/dev/zero"]);
    assert!(text.contains("bytes"), "{text}");
}

#[test]
fn a_path_that_an_object_names_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    for named in ["/dev/zero", fifo.to_str().unwrap()] {
        // The compiler would open it itself, so the name is put in afterwards.
        let harmless = format!("{}_", &named[..named.len() - 1]);
        let text = format!(
            "#include <linux/bpf.h>\n#define SEC(n) __attribute__((section(n), used))\n\
             # 3 \"{harmless}\"\nSEC(\"xdp\") int f(struct xdp_md *c) {{ return *(char *)(long)c->data; }}\n"
        );
        let source = write(folder.path(), "named.c", text.as_bytes());
        let object = folder.path().join("named.o");
        let flags = "-target bpf -O2 -g -w -I/usr/include/x86_64-linux-gnu -c";
        let mut compiler = Command::new("clang-19");
        let compiled = compiler
            .args(flags.split(' '))
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status();
        assert!(compiled.unwrap().success());
        let mut bytes = std::fs::read(&object).unwrap();
        let places: Vec<usize> = (0..bytes.len())
            .filter(|at| bytes[*at..].starts_with(harmless.as_bytes()))
            .collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at..at + named.len()].copy_from_slice(named.as_bytes());
        }
        std::fs::write(&object, &bytes).unwrap();
        let mut command = Command::new("timeout");
        command.args(["20", "prlimit", "--as=4294967296"]);
        command
            .arg(millrace().get_program())
            .arg("check")
            .arg(&object);
        let output = run(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("packet-bounds") && said.contains(named),
            "{said}"
        );
    }
}

#[test]
fn absurd_declarations_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, declaration) in [
        (
            "capacity",
            "__uint(max_entries, 0xffffffff); __type(key, __u32); __type(value, __u64);",
        ),
        (
            "none",
            "__uint(max_entries, 0); __type(key, __u32); __type(value, __u64);",
        ),
        (
            "key",
            "__uint(max_entries, 4); __uint(key_size, 100000); __uint(value_size, 8);",
        ),
        (
            "value",
            "__uint(max_entries, 65536); __uint(key_size, 4); __uint(value_size, 0x7fffffff);",
        ),
    ] {
        let source = format!(
            "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n\
             struct {{ __uint(type, BPF_MAP_TYPE_HASH); {declaration} }} m SEC(\".maps\");\n\
             SEC(\"xdp\") int f(struct xdp_md *ctx) {{ __u8 key[512] = {{}};\n\
             return bpf_map_lookup_elem(&m, key) ? XDP_PASS : XDP_DROP; }}\n"
        );
        let path = write(folder.path(), &format!("{name}.c"), source.as_bytes());
        let text = refused(millrace().arg("check").arg(&path));
        assert!(text.contains('m'), "{text}");
    }
}

#[test]
fn a_full_disk_and_a_closed_pipe_are_reported() {
    let full = "run nop --in captures/talk.pcap --out /dev/full";
    let text = refused(millrace().args(full.split(' ')));
    assert!(text.contains("/dev/full"), "{text}");

    let mut closed = Command::new("sh");
    let command = format!(
        "{} run nop --in mem:captures/talk.pcap --loops 100 --out - | head -c 1000 >/dev/null; \
         exit ${{PIPESTATUS[0]}}",
        millrace().get_program().to_string_lossy()
    );
    closed
        .current_dir(root())
        .arg("-c")
        .arg(format!("bash -c '{command}'"));
    let output = run(closed.stderr(Stdio::piped()));
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("error: "), "{text}");
}
