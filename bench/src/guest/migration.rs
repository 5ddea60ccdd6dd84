//! prads moved to another process while its packets come: for how long it is stopped, and what is copied.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use millrace_dataplane::worker::foreign::Foreign;
use millrace_guest::migrate::{self, Report, desk};
use millrace_guest::port::Packet;
use millrace_guest::{Element, Hosted, Spec, Word};
use millrace_tests::command::{millrace, root};
use millrace_traffic::capture::Reader;

use super::row;
use crate::contender::BURST;
use crate::measure::{self, Figure};
use crate::report::Section;

/// Milliseconds that it may be stopped.
const STOPPED: f64 = 10.0;
/// Between two bursts, and how long all may take.
const PAUSE: Duration = Duration::from_millis(2);
const LIMIT: Duration = Duration::from_secs(20);

/// The other process; it ends with this.
struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Of prads.
pub fn rows(section: &mut Section, folder: &Path, turns: usize) -> Result<Option<String>> {
    if Spec::parse("prads").is_err() {
        return Ok(Some(
            "prads is not installed (scripts/setup.sh test)".into(),
        ));
    }
    // Both ends and the packets' thread have something to do.
    measure::unpin()?;
    let moves = (0..turns.min(7)).map(|turn| moved(folder, turn));
    let reports = moves.collect::<Result<Vec<Report>>>();
    measure::pin()?;
    let reports = reports?;
    let figure =
        |of: &dyn Fn(&Report) -> f64| Figure::of(&reports.iter().map(of).collect::<Vec<_>>());
    let stopped = figure(&|r| r.stopped.as_secs_f64() * 1e3);
    let mut told = vec![
        ("stopped ms".to_owned(), stopped),
        ("rounds".to_owned(), figure(&|r| r.rounds.len() as f64)),
        ("MB".to_owned(), figure(&|r| r.bytes as f64 / 1e6)),
    ];
    let most = reports.iter().map(|r| r.rounds.len()).max().unwrap_or(0);
    for round in 0..most {
        let pages = figure(&|r| r.rounds.get(round).map_or(0.0, |r| r.pages as f64));
        told.push((format!("pages in {}", round + 1), pages));
    }
    let by = reports.first().map_or("", |report| report.by);
    section.rows.push(row(
        "prads moved",
        told,
        stopped.times(1.0 / STOPPED),
        format!("stopped at most {STOPPED} ms; pages found by {by}"),
        1.0,
    ));
    Ok(None)
}

fn connect(socket: &Path) -> Result<UnixStream> {
    let deadline = Instant::now() + LIMIT;
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= deadline => return Err(error).context("the receiver"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Moves it once, in the middle of the bundled capture.
fn moved(folder: &Path, turn: usize) -> Result<Report> {
    let folder = folder.join(format!("moved-{turn}"));
    std::fs::create_dir(&folder)?;
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let socket = folder.join("other.sock");
    let _receiver = Receiver(
        millrace()
            .args(["receive", "--seconds", "20"])
            .arg(&socket)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?,
    );
    let mut spec = Word::of("guest:prads -i @ -l prads.log")
        .context("no guest")?
        .spec()?;
    spec.directory = folder.canonicalize()?;
    let null = File::options().write(true).open("/dev/null")?;
    spec.output = null.as_raw_fd();
    let mut element = Element::new(Hosted::start(spec)?);
    let stream = connect(&socket)?;
    let mover = std::thread::spawn(move || {
        std::thread::sleep(10 * PAUSE);
        migrate::migrate(&desk::find("prads")?, stream, "the other process")
    });
    let mut reader = Reader::open(root().join("captures/talk.pcap"))?;
    let mut frames = Vec::new();
    while let Some(record) = reader.next()? {
        frames.push((record.data.to_vec(), record.time_ns, record.original_length));
    }
    for part in frames.chunks_mut(BURST) {
        let each = |(data, time, wire): &mut (Vec<u8>, u64, u32)| Packet::of(data, *time, *wire);
        let mut packets: Vec<Packet> = part.iter_mut().map(each).collect();
        // SAFETY: each packet lies in a buffer of its own in `frames`, which is not touched during the call.
        unsafe { element.burst(&mut packets) };
        ensure!(packets.iter().all(|p| p.fate == 0), "a packet was lost");
        std::thread::sleep(PAUSE);
    }
    let deadline = Instant::now() + LIMIT;
    while !mover.is_finished() && Instant::now() < deadline {
        element.idle();
        std::thread::sleep(PAUSE);
    }
    ensure!(mover.is_finished(), "prads was not moved within {LIMIT:?}");
    let moved = mover.join().ok().context("the mover failed")?;
    element.finish();
    Ok(moved?)
}
