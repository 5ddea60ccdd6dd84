//! Chains as configurations of Click, against themselves in the interpreter.

use std::path::{Path, PathBuf};

use millrace_synth::reference::{Became, Reference, Sessions, random, witnesses};
use millrace_synth::{Options, Synthesis, click, graph, synthesise};
use millrace_turns::its_turn;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::compare::synthesis;
use crate::generate::configuration;

fn chains() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../chains")
}

fn chain(path: &str) -> Synthesis {
    let path = chains().join(path);
    let graph = graph(&path).unwrap();
    synthesise("chain", graph, path.parent().unwrap(), Options::default()).unwrap()
}

/// Ports and bytes alike; which element dropped a packet is each configuration's own.
fn alike(a: &Became, b: &Became) -> bool {
    match (a, b) {
        (Became::Dropped(_), Became::Dropped(_)) => true,
        (a, b) => a == b,
    }
}

/// Gives the same packets to a chain and to what is printed for it.
fn same(path: &str, packets: usize) {
    let mut of = chain(path);
    let text = click::configuration(&mut of).unwrap_or_else(|e| panic!("{path}: {e}"));
    // Rules of long lists are a line each.
    let elements = text.lines().filter(|l| l.contains(" :: ")).count();
    let printed = synthesis(&text, false).unwrap_or_else(|e| panic!("{path}: {e}\n{text}"));
    assert_eq!(of.ports, printed.ports, "{path}");
    let (chain, click) = (Reference::new(&of), Reference::new(&printed));
    let mut count = 0;
    let mut one = |time: u64, port: u8, frame: &[u8]| {
        let right = chain.pass(port, time, frame).map(|p| p.became);
        let printed = click.pass(port, time, frame).map(|p| p.became);
        let (Some(right), Some(printed)) = (right, printed) else {
            panic!("{path}: no element receives from port {port}");
        };
        assert!(
            alike(&right, &printed),
            "{path}, port {port}, {frame:02x?}\n  chain:   {}\n  printed: {}\n{text}",
            chain.words(&right),
            click.words(&printed)
        );
        count += 1;
        right
    };
    let mut sent = Vec::new();
    if of.flows.any() {
        let mut sessions = Sessions::new(&of, 1);
        for _ in 0..packets {
            let (time, port, frame) = sessions.draw();
            if usize::from(port) >= of.ports.len() {
                continue;
            }
            if let Became::Left(port, bytes) = one(time, port, &frame) {
                sessions.sent(port, &bytes);
                sent.push(bytes);
            }
        }
    } else {
        let made = witnesses(&of, packets / 4).into_iter();
        for (n, (port, frame)) in made.chain(random(&of, 1).take(packets)).enumerate() {
            if usize::from(port) >= of.ports.len() {
                continue;
            }
            if let Became::Left(_, bytes) = one(n as u64 * 1_000_000, port, &frame) {
                sent.push(bytes);
            }
        }
    }
    assert!(!sent.is_empty(), "{path}: no packet left");
    println!(
        "{path}: {elements} elements, {count} packets, {} left",
        sent.len()
    );
}

/// Random configurations that are tried; `MILLRACE_TARGET_SEEDS` says how many.
fn seeds() -> u64 {
    let asked = std::env::var("MILLRACE_TARGET_SEEDS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// Random configurations: those that are printed do the same.
#[test]
fn random_configurations() {
    let mut printed = 0;
    for seed in 0..seeds() {
        let text = configuration(&mut ChaCha8Rng::seed_from_u64(seed));
        let Ok(mut of) = synthesis(&text, false) else {
            continue;
        };
        let Ok(click) = click::configuration(&mut of) else {
            continue;
        };
        let new = synthesis(&click, false).unwrap_or_else(|e| panic!("{seed}: {e}\n{click}"));
        assert_eq!(of.ports, new.ports, "{seed}");
        let (a, b) = (Reference::new(&of), Reference::new(&new));
        let made = witnesses(&of, 100).into_iter();
        for (port, frame) in made.chain(random(&of, seed).take(400)) {
            let passed = (a.pass(port, 0, &frame), b.pass(port, 0, &frame));
            let (Some(right), Some(other)) = passed else {
                continue;
            };
            let (right, other) = (right.became, other.became);
            assert!(
                alike(&right, &other),
                "{seed}, port {port}, {frame:02x?}\n{right:02x?}\n{other:02x?}\n{text}\n{click}"
            );
        }
        printed += 1;
    }
    println!("{printed} of {} are printed", seeds());
    assert!(printed > 5, "{printed}");
}

#[test]
fn routers() {
    for n in 1..=10 {
        same(&format!("routers/routers-{n}.click"), 2_000);
    }
}

#[test]
fn one_napt() {
    same("napts/napts-1.click", 4_000);
}

#[test]
fn access_control_lists() {
    for n in ["0", "251", "713"] {
        same(&format!("acl/acl-{n}.click"), 4_000);
    }
}

#[test]
fn a_list_of_thousands() {
    if !its_turn("a list of thousands in Click", 2, 3) {
        return;
    }
    same("acl/acl-8550.click", 1_000);
}

#[test]
fn what_click_cannot_say_is_refused() {
    let refused = |path: &str| {
        click::configuration(&mut chain(path))
            .unwrap_err()
            .to_string()
    };
    for (path, why) in [
        (
            "napts/napts-2.click",
            "several rewriters (n1/rw :: IPRewriter, n2/rw :: IPRewriter)",
        ),
        ("napts/napts-10.click", "several rewriters"),
        (
            "napts/zones.click",
            "keeps zones with the same addresses apart",
        ),
        ("example/example.click", "several rewriters"),
        (
            "firewall-router/firewall-router.click",
            "how long a frame is",
        ),
    ] {
        let said = refused(path);
        assert!(said.contains(why), "{path}: {said}");
    }
}

#[test]
fn what_has_no_element_is_refused() {
    let refused = |text: &str| {
        let mut of = synthesis(text, false).unwrap();
        click::configuration(&mut of).unwrap_err().to_string()
    };
    let one = |inner: &str| format!("FromDevice(a) -> {inner} -> Queue -> ToDevice(b);");
    let long = refused(&one("Classifier(100/01)"));
    assert!(long.contains("how long a frame is"), "{long}");
    let written = refused(&one(
        "Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> SetIPDSCP(3) -> Unstrip(14)",
    ));
    assert!(written.contains("it writes ip dscp"), "{written}");
    let held = refused(&one(
        "Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPGWOptions(10.0.0.1) -> Unstrip(14)",
    ));
    assert!(
        held.contains("IPGWOptions makes, copies or holds packets"),
        "{held}"
    );
}
