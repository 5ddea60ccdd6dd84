//! Random configurations: each synthesis does what the interpreter does.

use millrace_turns::its_turn;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::compare::{compare, synthesis};
use crate::generate::configuration;

/// A row of elements is walked by recursion: a long one is refused, whatever stack a thread has.
#[test]
fn a_row_without_end_is_refused() {
    if !its_turn("a row without end", 1, 3) {
        return;
    }
    let row = |elements: usize| {
        let row = vec!["Paint(1)"; elements].join(" -> ");
        synthesis(&format!("FromDevice(a) -> {row} -> ToDevice(a);"), false)
    };
    assert!(row(900).is_ok());
    let why = row(20_000).err().unwrap_or_default();
    assert!(
        why.contains("too many elements are behind each other"),
        "{why}"
    );
}

/// Each element leads on, back, and elsewhere, by a byte of its own: there are exponentially many ways through the loops.
#[test]
fn loops_in_loops_are_refused() {
    if !its_turn("loops in loops", 0, 3) {
        return;
    }
    let count = 30;
    let mut text = String::from("out :: Queue; out -> Unqueue -> ToDevice(b);\n");
    for at in 0..count {
        let (on, back) = (60 + 2 * at, 61 + 2 * at);
        text += &format!("e{at} :: Classifier({on}/01, {back}/02, -);\n");
    }
    text += "FromDevice(a) -> e0;\n";
    for at in 0..count {
        let next = match at + 1 {
            next if next < count => format!("e{next}"),
            _ => "out".to_owned(),
        };
        let (back, elsewhere) = (at.max(1) - 1, (7 * at + 3) % count);
        text += &format!("e{at}[0] -> {next}; e{at}[1] -> e{back}; e{at}[2] -> e{elsewhere};\n");
    }
    let why = synthesis(&text, false).err().unwrap_or_default();
    assert!(why.contains("ways through loops"), "{why}");
}

/// Configurations of a test run; MILLRACE_SYNTH_SEEDS asks for more.
const SEEDS: u64 = 40;

#[test]
fn random_configurations_do_what_the_interpreter_does() {
    let asked = std::env::var("MILLRACE_SYNTH_SEEDS").ok();
    let seeds: u64 = asked.and_then(|s| s.parse().ok()).unwrap_or(SEEDS);
    let (mut done, mut packets, mut refused) = (0, 0, std::collections::BTreeMap::new());
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = configuration(&mut rng);
        let of = match synthesis(&text, seed % 2 == 0) {
            Ok(of) => of,
            Err(why) => {
                let why = why.lines().next().unwrap_or("").to_owned();
                let why = why
                    .split_once("synthesised: ")
                    .map_or(why.clone(), |w| w.1.to_owned());
                *refused.entry(why).or_insert(0) += 1;
                continue;
            }
        };
        match compare(&of, &mut rng, 100) {
            Ok(count) => packets += count,
            Err(why) => panic!("seed {seed}\n{text}\n{why}"),
        }
        done += 1;
    }
    println!("{done} of {seeds} configurations, {packets} packets; refused: {refused:#?}");
    assert!(done * 5 > seeds * 4, "{done} of {seeds}: {refused:#?}");
}

/// What differs between packets of a flow is read from each, behind the flow's entry: here a flag of TCP in answers.
#[test]
fn answers_are_told_apart_by_their_own_flags() {
    let text = "rw :: IPRewriter(pattern 192.0.2.1 1024-65535 - - 0 1, drop);\n\
        FromDevice(in) -> Strip(14) -> CheckIPHeader -> [0] rw [0] -> Unstrip(14) -> ToDevice(out);\n\
        FromDevice(out) -> Strip(14) -> CheckIPHeader -> [1] rw [1]\n\
          -> IPFilter(allow src port > 60, allow tcp opt syn, deny all) -> Unstrip(14) -> ToDevice(in);";
    let c = millrace_synth::emit::c(&synthesis(text, false).unwrap());
    let programs = c.split("run:").nth(1).unwrap();
    assert!(
        programs.contains("upper = packet_bytes(p, 14 + ipv4_header_bytes(ip), 14);"),
        "{c}"
    );
    assert!(
        programs.contains("upper[13]") && !programs.contains("if (!0)"),
        "{c}"
    );
}

/// What is compiled has no line that the configuration has not.
#[test]
fn lines_are_those_of_the_configuration() {
    let text = "rw :: IPRewriter(pattern 192.0.2.1 1024-65535 - - 0 1, drop);\n\
        FromDevice(in) -> Strip(14) -> CheckIPHeader -> [0] rw [0] -> Unstrip(14) -> ToDevice(out);\n\
        FromDevice(out) -> Strip(14) -> CheckIPHeader -> [1] rw [1] -> Unstrip(14) -> ToDevice(in);";
    let c = millrace_synth::emit::lined(&synthesis(text, false).unwrap());
    let function = c.split("ON_PACKET(p)").nth(1).unwrap();
    let (mut line, mut within) = (0, false);
    for text in function.lines() {
        if let Some(rest) = text.strip_prefix("#line ") {
            line = rest.split(' ').next().unwrap().parse::<u32>().unwrap();
            within = true;
        } else if text == "}" {
            break;
        } else if within && !text.trim().is_empty() {
            assert!((1..=3).contains(&line), "{line}: {text}\n{c}");
            line += 1;
        }
    }
    assert!(within, "{c}");
}

/// Twenty rewriters behind each other: each is asked for TCP and for UDP, and behind it the protocol is known, so that there are not 2^20
/// ways.
#[test]
fn nested_rewriters_do_not_double() {
    let mut text = String::from(
        "FromDevice(a) -> s :: Strip(14) -> CheckIPHeader -> [0] r1; FromDevice(b) -> Strip(14) -> CheckIPHeader -> [1] r20;\n",
    );
    for n in 1..=20 {
        text.insert_str(
            0,
            &format!("r{n} :: IPRewriter(pattern 192.0.2.{n} 1024-65535 - - 0 1, drop);\n"),
        );
    }
    for n in 1..20 {
        let next = n + 1;
        text.push_str(&format!(
            "r{n} [0] -> DecIPTTL -> [0] r{next}; r{next} [1] -> DecIPTTL -> [1] r{n};\n"
        ));
    }
    text.push_str(
        "e :: EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(b); r20 [0] -> e;\n",
    );
    text.push_str(
        "f :: EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(a); r1 [1] -> f;\n",
    );
    let of = synthesis(&text, false).unwrap();
    assert_eq!((of.rewriters.len(), of.flows.most_hops), (20, 20));
    assert!(of.slow.iter().all(|s| !s.run), "{:?}", of.slow);
    // Beyond sixteen there is one stamp, and that is said.
    assert!(of.flows.forgets() && of.flows.stamps.is_empty());
    let relaxed = of.flows.relaxations();
    assert!(
        relaxed.iter().any(|r| r.0 == "early-discard"),
        "{relaxed:?}"
    );
}

/// Answers that come by an input that opens flows, and rewriters that open none, are the interpreter's: one table serves all its inputs.
#[test]
fn rewriters_whose_answers_have_no_input_of_their_own_are_on_the_slow_path() {
    let between = |rewriter: &str| {
        format!(
            "rw :: {rewriter}; rw [0] -> Unstrip(14) -> ToDevice(a); rw [1] -> Unstrip(14) -> ToDevice(b);\n\
             FromDevice(a) -> in :: Strip(14) -> CheckIPHeader -> rw; FromDevice(b) -> in;"
        )
    };
    for rewriter in ["IPRewriter(keep 1 0)", "UDPRewriter(drop)"] {
        let of = synthesis(&between(rewriter), false).unwrap();
        assert!(of.slow.iter().any(|s| s.run), "{rewriter}: {:?}", of.slow);
        assert!(!of.flows.any());
    }
    // One way: nothing comes back.
    let text = "rw :: IPRewriter(pattern 192.0.2.1 1024-65535 - - 0 0);\n\
        FromDevice(a) -> Strip(14) -> CheckIPHeader -> rw -> Unstrip(14) -> ToDevice(b);";
    let of = synthesis(text, false).unwrap();
    assert!(of.flows.any(), "{:?}", of.slow);
}

/// A packet that ends in front of its network header is empty behind StripToNetworkHeader.
#[test]
fn short_packets_are_empty_behind_their_network_header() {
    use rand::SeedableRng;
    let text = "FromDevice(a) -> MarkIPHeader(14) -> StripToNetworkHeader -> DecIPTTL -> d :: Null -> ToDevice(b);";
    let of = synthesis(text, false).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    compare(&of, &mut rng, 200).unwrap();
    let reference = millrace_synth::reference::Reference::new(&of);
    for length in [0, 3, 13, 14, 33, 34] {
        let frame = vec![0xaa; length];
        let differs = crate::compare::differ(&reference, &of, 0, &frame);
        assert_eq!(differs, None);
    }
}

/// An address that is written twice, in a packet that is cut in between within the sum that follows the first write.
#[test]
fn a_packet_that_is_cut_between_two_writes_keeps_half_a_sum() {
    let text = "FromDevice(a) -> Strip(14) -> MarkIPHeader -> StoreIPAddress(10.9.0.1, dst) -> CheckIPHeader\n\
        -> StoreIPAddress(10.9.0.2, dst) -> Unstrip(14) -> ToDevice(b);";
    let of = synthesis(text, false).unwrap();
    let reference = millrace_synth::reference::Reference::new(&of);
    for protocol in [6, 17] {
        for bytes in 0..24_u8 {
            let mut frame = vec![0; 14 + 20 + 40];
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[14..26].copy_from_slice(&[0x45, 0, 0, 20 + bytes, 0, 0, 0, 0, 9, protocol, 0, 0]);
            frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            let sum = millrace_wire::checksum::Sum::default().bytes(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.checksum().to_be_bytes());
            let differs = crate::compare::differ(&reference, &of, 0, &frame);
            assert_eq!(differs, None, "{protocol}, {bytes} bytes");
            let fate = millrace_synth::packet::apply(&of, &frame, 0).unwrap();
            let handed = matches!(fate.verdict, millrace_synth::action::Verdict::Hand(_));
            // The sum is at byte 16 of TCP, at byte 6 of UDP.
            let within = bytes < if protocol == 6 { 18 } else { 8 };
            assert_eq!(handed, within, "{protocol}, {bytes} bytes");
        }
    }
}

/// What is left of a packet that leaves is less than a frame can be cut to at its front.
#[test]
fn a_packet_of_which_less_than_a_frame_is_left_is_handed_over() {
    let text = "FromDevice(a) -> Strip(20) -> ToDevice(b);";
    let of = synthesis(text, false).unwrap();
    for (bytes, handed) in [(19, true), (20, true), (33, true), (34, false)] {
        let fate = millrace_synth::packet::apply(&of, &vec![0; bytes], 0).unwrap();
        let hand = matches!(fate.verdict, millrace_synth::action::Verdict::Hand(_));
        assert_eq!(hand, handed, "{bytes} bytes");
    }
}
