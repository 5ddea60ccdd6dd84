//! The first SIGINT or SIGTERM ends a run also within a packet: workers that are in one drain nothing, so that after a
//! second the process ends without them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use millrace_dataplane::{inside, signal};

use crate::failure::{Failure, report};

/// How long a call of a module may last after a signal.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Exit status of a run that ended within a packet.
const WITHIN: i32 = 3;

/// While it lives the process ends a second after a signal if a worker is in one packet all that time.
pub struct Patience {
    over: Arc<AtomicBool>,
}

impl Patience {
    /// From here on; with `json` the end is told as a document, too.
    pub fn begin(json: bool) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let done = over.clone();
        // Without a thread the second signal still ends the process.
        let _ = std::thread::Builder::new()
            .name("patience".to_owned())
            .spawn(move || watch(&done, json));
        Self { over }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn watch(over: &AtomicBool, json: bool) {
    let mut since = Instant::now();
    let mut under = inside::Under::default();
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
        if !signal::flag().load(Ordering::Relaxed) {
            continue;
        }
        if !under.lasts() {
            (since, under) = (Instant::now(), inside::now());
        } else if since.elapsed() >= PATIENCE {
            let failure = Failure::wrong(
                "run: interrupted within a packet, which had not ended a second after the signal; there is no account of it",
            );
            let failure = failure.help(
                "what was sent more than 100 ms before that packet's burst is in the outputs; what the burst did is lost",
            );
            report(&failure, json);
            std::process::exit(WITHIN);
        }
    }
}
