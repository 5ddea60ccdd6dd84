//! Sequencer and replicas in the kernel on interfaces of a namespace, where carriers come as from a network.

use std::path::PathBuf;
use std::process::Command;

use millrace_emit::target::xdp::Xdp;

use super::verilog::files;
use super::xdp::{
    BEAT, CONTRADICTED, DROP, Frame, LATE, LOST, NUMBER, RECOVERED, STOPPED, alone, came, carried,
    compiled, counted, driven, driver, sequence, strict,
};
use super::{captures, carriers};
use crate::support::Bench;

/// What stops the group, with the reason, and what does not: on interfaces of a namespace, where carriers come as from a network.
#[test]
fn on_interfaces_replicas_stop_rather_than_differ() {
    let bench = Bench::new();
    let pass = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nSEC(\"xdp\") int pass(struct xdp_md *ctx) { return XDP_PASS; }\n";
    let pass = compiled(&bench, "pass", pass);
    let program = strict(&bench, "ddos");
    let files = files(&Xdp, &program, 3, 12);
    let sequencer = compiled(&bench, "ddos-sequencer", &files[0].text);
    let whole = compiled(&bench, "ddos-replica", &files[1].text);
    // Logs of 16 rows hold four more than a carrier.
    let short = files[1].text.replace("#define LOG 1024", "#define LOG 16");
    let short = compiled(&bench, "ddos-short", &short);
    let carriers = carriers(&captures().join("ddos.pcap"));
    let given = |object: &PathBuf, frames: &[Frame]| {
        let mut command = Command::new(driver(&bench, "veth"));
        command.arg("3").args([&sequencer, object, &pass]);
        command.arg("carriers");
        counted(&mut command, frames, 3)
    };
    let all = carried(&carriers);
    let Some((expected, counts)) = given(&whole, &all) else {
        return;
    };
    assert_eq!(
        counts[LATE] + counts[LOST] + counts[CONTRADICTED] + counts[NUMBER],
        0
    );
    assert!(expected.iter().filter(|d| d.0 == 3).count() > 10);
    let with = |change: &dyn Fn(&mut Vec<Frame>)| {
        let mut frames = carried(&carriers);
        change(&mut frames);
        frames
    };
    let late = 20;
    // Reordered at its core, or twice: late, and nothing else changes.
    let frames = with(&|f| {
        let again = Frame {
            bytes: f[late].bytes.clone(),
            ..f[late]
        };
        f.insert(late + 9, again);
    });
    let (mut done, counts) = given(&whole, &frames).unwrap();
    done.remove(late + 9);
    assert_eq!((done == expected, counts[LATE]), (true, 1));
    // A number that no sequencer reaches.
    let frames = with(&|f| {
        let mut bytes = f[late].bytes.clone();
        bytes[18..26].fill(0xff);
        f.insert(late, Frame { bytes, ..f[late] });
    });
    let (mut done, counts) = given(&whole, &frames).unwrap();
    done.remove(late);
    assert_eq!((done == expected, counts[NUMBER]), (true, 1));
    // Another row under a number that was there: all stop, at once.
    let stops = |object: &PathBuf, frames: &[Frame], at: usize, why: usize| {
        let (done, counts) = given(object, frames).unwrap();
        assert_eq!(counts[why], 1, "{counts:?}");
        assert!(
            counts[STOPPED] as usize + at + 1 >= frames.len(),
            "{counts:?}"
        );
        assert_eq!(done[..at], expected[..at]);
        assert!(done[at..].iter().all(|d| d.0 == DROP));
    };
    let frames = with(&|f| {
        // The row four before its own: its core has it from an earlier carrier.
        let slot = (sequence(&carriers[late]) - 5) % 12;
        f[late].bytes[36 + 4 * slot as usize] ^= 1;
    });
    stops(&whole, &frames, late, CONTRADICTED);
    // A second clock, behind the first.
    let frames = with(&|f| f[late].bytes[26] = 0);
    stops(&whole, &frames, late, CONTRADICTED);
    // A replica that stalls: its log is behind, and others need what it cannot hold.
    let mine = |n: &usize| carriers[*n].core == 0;
    let stalled: Vec<usize> = (0..carriers.len()).filter(mine).skip(3).take(11).collect();
    let frames = with(&|f| {
        let mut n = 0;
        f.retain(|_| {
            n += 1;
            !stalled.contains(&(n - 1))
        });
    });
    let (_, counts) = given(&short, &frames).unwrap();
    assert!(counts[LOST] > 0 && counts[STOPPED] > 0, "{counts:?}");
    // Longer logs have all that it missed.
    let (_, counts) = given(&whole, &frames).unwrap();
    assert!(
        counts[RECOVERED] > 0 && counts[LOST] + counts[STOPPED] == 0,
        "{counts:?}"
    );
}

/// On interfaces: what comes back by each replica's interface is what the program alone forwards.
#[test]
fn on_interfaces_the_replicas_forward_what_the_program_alone_does() {
    let bench = Bench::new();
    let pass = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nSEC(\"xdp\") int pass(struct xdp_md *ctx) { return XDP_PASS; }\n";
    let pass = compiled(&bench, "pass", pass);
    for (name, slots) in [
        ("conntrack", 6),
        ("ddos", 12),
        ("heavyhitter", 9),
        ("portknock", 12),
        ("tokenbucket", 9),
    ] {
        let program = strict(&bench, name);
        let files = files(&Xdp, &program, 3, slots);
        let sequencer = compiled(&bench, &format!("{name}-sequencer"), &files[0].text);
        let replica = compiled(&bench, &format!("{name}-replica"), &files[1].text);
        let carriers = carriers(&captures().join(format!("{name}.pcap")));
        let frames: Vec<Frame> = (carriers.iter().map(|c| came(c, c.core.into()))).collect();
        let mut command = Command::new(driver(&bench, "veth"));
        command.arg("3").arg(sequencer).arg(replica).arg(&pass);
        let Some(done) = driven(&mut command, &frames) else {
            return;
        };
        let own: Vec<usize> = (0..carriers.len())
            .filter(|n| carriers[*n].flags != BEAT)
            .collect();
        let stamps: Vec<u64> = own.iter().map(|n| carriers[*n].stamp).collect();
        for (n, expected) in own.iter().zip(alone(&bench, &program, &stamps)) {
            let expected = match expected.fate {
                3 => (3, expected.bytes),
                _ => (DROP, Vec::new()),
            };
            assert_eq!(done[*n], expected, "{name}: record {n}");
        }
        let forwarded = done.iter().filter(|d| d.0 == 3).count();
        // This one only counts.
        let all = name == "heavyhitter";
        assert!(forwarded > 2, "{name}: {forwarded}");
        assert_eq!(forwarded == own.len(), all, "{name}: {forwarded}");
    }
}
