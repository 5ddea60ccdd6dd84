//! From a source file to the last packet of a small capture, as a user waits for it.

use std::time::Instant;

use anyhow::{Result, bail};
use millrace_tests::command::{millrace, nfs};

use crate::measure::Figure;
use crate::report::{Row, Section};

/// Times the whole command, cold and warm.
pub fn section(turns: usize) -> Result<Section> {
    let mut section = Section::new(
        "start",
        "From source to the end of a small capture, in seconds: warm / cold",
        "the whole command as a process; cold: an empty cache, so clang runs twice",
    );
    for nf in nfs() {
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for _ in 0..turns.min(5) {
            let folder = tempfile::tempdir()?;
            for times in [&mut cold, &mut warm] {
                let mut command = millrace();
                command
                    .env("MILLRACE_CACHE", folder.path().join("cache"))
                    .args(["run", &nf]);
                command.args(["--in", "captures/talk.pcap", "--out", "/dev/null"]);
                let begin = Instant::now();
                let output = command.output()?;
                times.push(begin.elapsed().as_secs_f64());
                if !output.status.success() {
                    bail!("{nf}: {}", String::from_utf8_lossy(&output.stderr));
                }
            }
        }
        let (cold, warm) = (Figure::of(&cold), Figure::of(&warm));
        section.rows.push(Row {
            name: nf,
            flows: 0,
            skew: String::new(),
            ns: vec![
                ("cold ms".into(), cold.times(1e3)),
                ("warm ms".into(), warm.times(1e3)),
            ],
            ratio: warm.times(1.0 / cold.median),
            bar: "cold under 2 s, warm under 50 ms".into(),
            met: cold.median < 2.0 && warm.median < 0.05,
        });
    }
    Ok(section)
}
