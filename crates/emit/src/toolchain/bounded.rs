//! A compiler within the budget of the object that it compiles: its time ends with the object's, and each of its
//! processes may take the object's memory.
//!
//! What a compiler takes does not grow in proportion to a program: instruction selection over one long block is
//! quadratic in LLVM 19. So its processor time is bounded, and the clock's with room for who else computes there. It runs in a
//! process group of its own, which is killed whole, because clang starts other processes.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use millrace_check::Budget;
use millrace_check::budget::Spent;
use millrace_check::moment;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::Error;

/// Address space beside what the compiler allocates: its own code, mapped files.
const CODE: u64 = 1 << 30;

/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How many times as long it may take by the clock, where others compute beside it.
const CROWDED: u32 = 3;

/// How a compiler ended.
pub(super) enum Ended {
    /// by itself, with what it said
    Itself(ExitStatus, String),
    /// because there is no more
    Spent(Spent),
}

/// Runs a compiler for at most `share` of what is left of the time.
pub(super) fn run(command: &Command, budget: &Budget, share: f64) -> Result<Ended, Error> {
    let time = budget.left().mul_f64(share);
    let memory = budget.memory().saturating_add(CODE) >> 10;
    let seconds = time.as_secs_f64().ceil();
    let mut limited = Command::new("sh");
    limited
        .args([
            "-c",
            // At the hard limit it would be killed as if by somebody else.
            "ulimit -v \"$1\"; ulimit -S -t \"$2\"; shift 2; exec \"$@\"",
        ])
        .args(["sh", &memory.to_string(), &seconds.to_string()])
        .arg(command.get_program())
        .args(command.get_args())
        // A sanitizer that this process runs under is not the compiler's, and reserves more than there is.
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = limited.spawn().map_err(Error::io(command.get_program()))?;
    let stderr = child.stderr.take();
    let said = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let began = Instant::now();
    let ended =
        wait(&mut child, began + time * CROWDED).map_err(Error::io(command.get_program()))?;
    moment::waited(began.elapsed().min(time));
    let said = said.join().unwrap_or_default();
    Ok(match ended {
        None => Ended::Spent(Spent::Time(budget.time())),
        Some(status)
            if status.signal() == Some(SIGXCPU) || !status.success() && said.contains(OVER) =>
        {
            Ended::Spent(Spent::Time(budget.time()))
        }
        Some(status) if !status.success() && wants_memory(&said) => {
            Ended::Spent(Spent::Memory(budget.memory()))
        }
        Some(status) => Ended::Itself(status, said),
    })
}

/// The signal of a process whose processor time is used up (signal(7)).
const SIGXCPU: i32 = 24;

/// What the driver says of a process of its own that this ended (strsignal(3)).
const OVER: &str = "CPU time limit exceeded";

/// Whether a compiler died of that, as LLVM and the C++ library say it.
fn wants_memory(said: &str) -> bool {
    ["out of memory", "bad_alloc", "Cannot allocate memory"]
        .iter()
        .any(|words| said.contains(words))
}

/// Waits for it, or kills it with all that it has started; none then.
fn wait(child: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            // It is there until it has been waited for. If it cannot be killed it has just ended.
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// What is wrong where the object's budget ended it.
pub(super) fn spent(about: &Path, spent: Spent) -> Error {
    Error::Spent {
        stage: "clang",
        file: about.to_owned(),
        spent,
    }
}
