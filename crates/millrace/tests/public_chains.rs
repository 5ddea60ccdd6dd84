//! The public chains of SNF's authors (Katsikas et al., PeerJ Computer Science 2:e98, 2016), where a folder has them: each parses, is
//! synthesised, and does with its slow path what the interpreter does, on packets of every class, random ones and sessions.
//!
//! `MILLRACE_SNF_CHAINS` names a copy of the folder `input` of github.com/gkatsikas/snf at its first release (commit 17fe62f), which has
//! 209 configurations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use millrace::Make;
use millrace::click::compare::{Both, Given};
use millrace_synth::{Options, reference};

/// Paths of which packets are made, and random packets, of each chain.
const PATHS: usize = 1_000;
const RANDOM: usize = 2_000;

/// Their files are put together by a program: those of `templates` stand behind a device's input, and results of synthesis get values.
const DEFINED: &str = "define($iface0 a, $iface1 b, $macAddr0 02:00:00:00:00:01, $macAddr1 02:00:00:00:01:01,
    $gwMACAddr0 02:00:00:00:00:02, $gwMACAddr1 02:00:00:00:01:02, $gwMACAddr 02:00:00:00:01:02, $ipAddr 10.0.0.1, $ipAddr0 10.0.0.1,
    $ipAddr1 200.0.0.1, $queueSize 1000, $etherEncapConf \"02:00:00:00:00:01, 02:00:00:00:00:02\");\n";
const BEHIND: &str = "FromDevice(a) -> strip :: Strip(14); markIPHeader :: MarkIPHeader;\n";

/// Click itself refuses this one: a filter has an empty pattern.
const REFUSED: &str = "motivating_example/synth_example.click";

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => files(&path, found),
            false if path.extension().is_some_and(|e| e == "click") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn all_209_run_whole() {
    let Some(folder) = std::env::var_os("MILLRACE_SNF_CHAINS").map(PathBuf::from) else {
        println!("skipped: MILLRACE_SNF_CHAINS names no folder with the chains of SNF");
        return;
    };
    let mut all = Vec::new();
    files(&folder, &mut all);
    let made = tempfile::tempdir().unwrap();
    let (mut equal, mut failed, mut why) = (0, Vec::new(), BTreeMap::<String, usize>::new());
    let mut fates = [0_u64; 3];
    for path in &all {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let bytes = std::fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let mut whole = String::new();
        if !text.contains("define(") {
            whole.push_str(DEFINED);
        }
        if name.contains("templates") {
            whole.push_str(BEHIND);
        }
        whole.push_str(&text);
        let copy = made
            .path()
            .join(format!("chain{}.click", equal + failed.len()));
        std::fs::write(&copy, whole).unwrap();
        match one(&copy) {
            Err(e) if name.ends_with(REFUSED) && e.contains("empty pattern") => equal += 1,
            Err(e) => failed.push(format!("{name}: {e}")),
            Ok((found, reasons)) => {
                equal += 1;
                for (sum, one) in fates.iter_mut().zip(found) {
                    *sum += one;
                }
                for reason in reasons {
                    *why.entry(reason).or_default() += 1;
                }
            }
        }
    }
    let [forwarded, dropped, handed] = fates;
    println!(
        "{} chains, {equal} equal: {forwarded} packets forwarded, {dropped} dropped, {handed} handed over",
        all.len()
    );
    for (reason, chains) in &why {
        println!("  {chains:>4} chains  {reason}");
    }
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        all.len(),
        failed.join("\n")
    );
    assert_eq!(all.len(), 209);
}

/// Fates of packets on which both agree, and what is on the slow path: the class of the element, and why.
fn one(path: &Path) -> Result<([u64; 3], Vec<String>), String> {
    let said = |e: millrace::Error| format!("{e}\n{}", e.detail.clone().unwrap_or_default());
    let whole = Options {
        whole: true,
        ..Options::default()
    };
    let of = millrace::click::read(path, false, whole).map_err(said)?;
    let word = format!("{}:whole", path.display());
    let function = millrace::find(&word).map_err(said)?;
    let function = function.load(&Make::default(), &mut |_| {}).map_err(said)?;
    let mut fates = [0; 3];
    let again = millrace::click::read(path, false, whole).map_err(said)?;
    for (of, sessions) in [(&of, false), (&again, true)] {
        let mut both = Both::new(&function, of).map_err(said)?;
        match (sessions, of.flows.any()) {
            (true, _) => both.sessions(5, RANDOM),
            // Packets of all kinds get ports that are drawn: sessions do not.
            (false, true) => {}
            (false, false) => {
                let made = reference::witnesses(of, PATHS).into_iter();
                let random = reference::random(of, 5).take(RANDOM);
                both.all(
                    made.chain(random)
                        .enumerate()
                        .map(|(number, (port, bytes))| Given {
                            port,
                            time: number as u64 * 1_000_000,
                            bytes,
                        }),
                );
            }
        }
        if let Some(difference) = both.found.difference {
            return Err(difference);
        }
        for (sum, one) in fates.iter_mut().zip(both.found.fates) {
            *sum += one;
        }
    }
    let elements = &of.router.graph().elements;
    let mut why: Vec<String> = { of.slow.iter() }
        .map(|s| format!("{}: {}", elements[s.element].class, s.why))
        .collect();
    why.sort();
    why.dedup();
    Ok((fates, why))
}
