//! How long it takes until a guest's program is mapped, and until it asks for packets.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::{Context, Result};
use millrace_guest::{Hosted, Spec, Word};

use super::row;
use crate::measure::Figure;
use crate::report::Section;

/// Milliseconds that these may take.
const MAPPED: f64 = 1.0;
const READY: f64 = 50.0;

/// Of tcpdump.
pub fn rows(section: &mut Section, _: &Path, turns: usize) -> Result<Option<String>> {
    if Spec::parse("tcpdump").is_err() {
        return Ok(Some(
            "tcpdump is not installed (scripts/setup.sh test)".into(),
        ));
    }
    let null = File::options().write(true).open("/dev/null")?;
    let (mut mapped, mut ready) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        let mut spec = Word::of("guest:tcpdump -n -i @")
            .context("no guest")?
            .spec()?;
        spec.output = null.as_raw_fd();
        let guest = Hosted::start(spec)?;
        mapped.push(guest.mapped.as_secs_f64() * 1e3);
        ready.push(guest.took.as_secs_f64() * 1e3);
    }
    let parts = [("mapped", &mapped, MAPPED), ("ready", &ready, READY)];
    for (name, took, most) in parts {
        let took = Figure::of(took);
        section.rows.push(row(
            &format!("{name}, ms"),
            vec![("tcpdump".into(), took)],
            took.times(1.0 / most),
            format!("at most {most} ms"),
            1.0,
        ));
    }
    Ok(None)
}
