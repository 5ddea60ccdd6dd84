//! Objects that take more than they may: the message names the stage, the budget, and how to raise it; and a packet that
//! takes long, in which a run is stopped.

use crate::common;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{capture, millrace, output};

/// What the programs below share, in the words of the kernel's headers.
const HEAD: &str = r#"
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
struct ctx { u32 data, end, meta, port, queue, out; };
#define SEC(name) __attribute__((section(name), used))
#define MAP(name, type_, entries, V) struct { int (*type)[type_]; int (*max_entries)[entries]; u32 *key; V *value; } name SEC(".maps")
#define HELPER static __attribute__((unused))
HELPER void *(*lookup)(void *, const void *) = (void *)1;
HELPER long (*update)(void *, const void *, const void *, u64) = (void *)2;
HELPER u32 (*draw)(void) = (void *)7;
HELPER long (*loop)(u32, void *, void *, u64) = (void *)181;
char LICENSE[] SEC("license") = "GPL";
"#;

/// A program of these lines.
pub fn program(folder: &Path, lines: &str) -> PathBuf {
    let file = folder.join("worst.c");
    std::fs::write(&file, format!("{HEAD}{lines}")).unwrap();
    file
}

/// What the command says that is refused for its budget.
fn over(command: &mut Command, status: i32, words: &[&str]) {
    let (output, text) = output(command);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}:\n{text}");
    }
}

/// Functions that each call the next one so many times: little text, many instructions.
fn tree(calls: usize, depth: usize) -> String {
    let mut text =
        "static __attribute__((noinline)) u32 f0(u32 x) { return x * 7 + draw(); }\n".to_owned();
    for d in 1..depth {
        write!(
            text,
            "static __attribute__((noinline)) u32 f{d}(u32 x) {{ u32 r = x;"
        )
        .unwrap();
        for i in 0..calls {
            write!(text, " r += f{}(r + {i});", d - 1).unwrap();
        }
        text.push_str(" return r; }\n");
    }
    text + &format!(
        "SEC(\"xdp\") int worst(struct ctx *c) {{ return f{}(c->port) & 3; }}\n",
        depth - 1
    )
}

#[test]
fn the_check_has_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let file = program(folder.path(), &tree(7, 7));
    let words = ["check: ", "object's budget", "--budget-memory"];
    over(millrace().arg("check").arg(&file), 1, &words);
}

#[test]
fn clang_has_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let file = program(folder.path(), &tree(5, 7));
    let began = Instant::now();
    let mut build = millrace();
    build.args(["build", "--budget-time", "3", "-o"]);
    build.arg(folder.path().join("out")).arg(&file);
    over(
        &mut build,
        2,
        &["clang: ", "budget of 3 s", "--budget-time"],
    );
    // Much longer than it takes, and much shorter than clang would.
    assert!(began.elapsed() < Duration::from_secs(60));
}

/// A key that is mixed of the addresses in so many rounds.
fn mixed(rounds: usize) -> String {
    format!(
        r#"MAP(counts, 1, 1024, u64);
SEC("xdp") int worst(struct ctx *c) {{
    u8 *d = (void *)(long)c->data, *end = (void *)(long)c->end;
    if (d + 38 > end || *(u16 *)(d + 12) != 8 || d[14] != 0x45 || d[23] != 17) return 2;
    u32 x = *(u32 *)(d + 26), y = *(u32 *)(d + 30), z = *(u32 *)(d + 34);
    #pragma clang loop unroll(full)
    for (int i = 0; i < {rounds}; i++) {{
        x += y; y = y << 5 | y >> 27; y ^= x;
        z += x; x = x << 7 | x >> 25; x ^= z;
        y += z; z = z << 11 | z >> 21; z ^= y;
    }}
    u32 key = x ^ y ^ z;
    u64 one = 1, *count = lookup(&counts, &key);
    if (count) {{ *count += 1; return *count & 1 ? 1 : 2; }}
    update(&counts, &key, &one, 0);
    return 2;
}}
"#
    )
}

#[test]
fn the_plan_has_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let file = program(folder.path(), &mixed(20));
    let began = Instant::now();
    let mut plan = millrace();
    plan.args(["plan", "--solver-time", "1"]).arg(&file);
    let (output, text) = output(&mut plan);
    assert!(output.status.success(), "{text}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Either the time for formulas ends, or that for questions.
    for word in ["counts: lock", "--solver-time"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn rounds_weigh_what_their_body_costs() {
    let folder = tempfile::tempdir().unwrap();
    let file = program(
        folder.path(),
        r#"struct large { u8 bytes[1 << 20]; };
MAP(from, 2, 1, struct large); MAP(to, 2, 2, struct large);
static long inner(u32 i, void *x) {
    u32 zero = 0, k = i & 1; void *v = lookup(&from, &zero);
    if (v) update(&to, &k, v, 0);
    return 0;
}
static long outer(u32 i, void *x) { loop(256, inner, 0, 0); return 0; }
SEC("xdp") int worst(struct ctx *c) { loop(1 << 23, outer, 0, 0); return 2; }
"#,
    );
    over(
        millrace().arg("check").arg(&file),
        1,
        &["too-many-rounds", "17179869184 steps"],
    );
}

#[test]
fn the_memory_of_maps_has_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let file = program(
        folder.path(),
        "MAP(large, 2, 40000000, u64); MAP(small, 2, 4, u64);\nSEC(\"xdp\") int worst(struct ctx *c) { u32 k = c->port; return lookup(&large, &k) && lookup(&small, &k) ? 1 : 2; }\n",
    );
    let input = folder.path().join("in.pcap");
    capture(&input, &[(1, vec![0; 60])]);
    let run = |memory: &str| {
        let mut run = millrace();
        run.args(["run", "--map-memory", memory, "--pass"]);
        run.arg(folder.path().join("out.pcap"))
            .arg("--in")
            .arg(&input)
            .arg(&file);
        run
    };
    let words = [
        "run: ",
        "large 306.0 MiB",
        "budget of their memory is 64.0 MiB",
        "--map-memory",
        "--capacity",
    ];
    over(&mut run("64M"), 2, &words);
    let (output, text) = output(&mut run("512M"));
    assert!(output.status.success(), "{text}");
}

/// A packet whose first byte is 1 takes seconds, others none.
pub const SLOW: &str = r#"MAP(sum, 2, 1, u64);
static long add(u32 i, void *x) { u64 *v = x; *v = *v * 6364136223846793005ull + (i ^ draw()); return 0; }
static long many(u32 i, void *x) { loop(1 << 23, add, x, 0); return 0; }
SEC("xdp") int slow(struct ctx *c) {
    u8 *d = (void *)(long)c->data, *end = (void *)(long)c->end;
    if (d + 14 > end) return 1;
    if (d[0] != 1) return 2;
    u64 v = d[1];
    loop(28, many, &v, 0);
    u32 zero = 0; u64 *s = lookup(&sum, &zero);
    if (s) *s += v;
    return 2;
}
"#;

#[test]
fn the_first_signal_ends_a_run_within_a_packet() {
    let folder = tempfile::tempdir().unwrap();
    let file = program(folder.path(), SLOW);
    let (input, out) = (
        folder.path().join("in.pcap"),
        folder.path().join("out.pcap"),
    );
    let fast: Vec<_> = (0..64).map(|i| (i, vec![0; 60])).collect();
    let slow = (64..96).map(|i| (i, vec![1; 60]));
    capture(
        &input,
        &fast.iter().cloned().chain(slow).collect::<Vec<_>>(),
    );
    // Made before, so that only the run is waited for.
    let bundle = folder.path().join("bundle");
    let (_, text) = output(millrace().args(["build", "-o"]).arg(&bundle).arg(&file));
    assert!(bundle.is_dir(), "{text}");
    let mut run = millrace();
    run.args(["run", "--burst", "32", "--in"])
        .arg(&input)
        .arg("--pass")
        .arg(&out)
        .arg(&bundle);
    let child = run
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    let began = Instant::now();
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{text}");
    assert!(text.contains("interrupted within a packet"), "{text}");
    // 32 packets of seconds each would take minutes.
    assert!(began.elapsed() < Duration::from_secs(30));
}
