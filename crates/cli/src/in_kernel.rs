//! A function that the kernel runs on its interfaces: `--ports xdp:IF`.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use millrace::Function;
use millrace_control::pins::Pins;
use millrace_dataplane::Mailbox;
use millrace_dataplane::account::{self as accounts, Account, WorkerAccount};
use millrace_dataplane::memory::Memory;
use millrace_dataplane::module::Record;
use millrace_dataplane::port::{PortError, xdp};
use millrace_dataplane::privilege::Aside;
use millrace_dataplane::runner::RecordWriter;
use millrace_dataplane::signal;
use millrace_kernel::{Content, Kernel, Wanted};
use millrace_object::insn::Insn;
use millrace_object::program::{Dialect, Program, Role};

use crate::failure::Failure;
use crate::function;
use crate::metrics::Endpoint;
use crate::notify::Notify;
use crate::outside::Outside;
use crate::{log, screen};

/// Between two looks at records, signals and the clock.
const TURN: Duration = Duration::from_millis(20);
/// Between two looks at the interfaces, and two updates of what scrapes are answered from.
const LOOK: Duration = Duration::from_millis(200);
/// The number of the helper that redirects to an interface.
const REDIRECT: u32 = 23;

/// The request.
pub struct Asked<'a> {
    /// the function
    pub function: &'a Function,
    /// `--ports`
    pub ports: &'a [String],
    /// something that was given and that the kernel has no use for
    pub given: Option<&'a str>,
    /// `--capacity`
    pub capacity: &'a [String],
    /// `--map` and `--pin`
    pub outside: &'a Outside,
    /// `--records`
    pub records: Option<RecordWriter>,
    /// `--metrics`
    pub metrics: Option<SocketAddr>,
    /// `--seconds`
    pub time: Option<Duration>,
}

/// Whether a word names an interface on which the kernel is to run the function.
pub fn asked<'a>(mut words: impl Iterator<Item = &'a String>) -> bool {
    words.any(|w| xdp::names(w))
}

/// Runs it until a signal or the time limit, and accounts.
///
/// # Errors
/// The function is none for the kernel, or a port cannot be opened.
pub fn run(mut asked: Asked<'_>, aside: Aside, notify: Notify) -> Result<Account, Failure> {
    let function = asked.function;
    let program = fits(&asked)?;
    let entries = program.entries.iter().filter(|e| e.role == Role::Xdp);
    let programs: Vec<String> = entries
        .filter_map(|e| program.functions.get(e.function.0))
        .map(|f| f.name.clone())
        .collect();
    let (Some(object), Some(entry)) = (&function.object, programs.get(function.entry)) else {
        return Err(Failure::wrong("the kernel runs objects, and there is none")
            .help("give the function's source or its object"));
    };
    let (contents, pins, opened) = asked.outside.in_kernel(&function.exposed)?;
    let contents = contents.into_iter().map(|e| Content {
        map: function
            .exposed
            .info(e.object)
            .map_or_else(|_| String::new(), |o| o.name.clone()),
        key: e.key,
        value: e.value,
    });
    let constants = program
        .objects
        .iter()
        .filter(|o| o.read_only && o.name.starts_with(".rodata"));
    let wanted = Wanted {
        object,
        program: entry,
        license: &program.license,
        programs: &programs,
        constants: constants
            .filter_map(|o| Some((o.name.as_str(), o.initial.as_deref()?)))
            .collect(),
        capacities: &function::capacities(asked.capacity)?,
        contents: contents.collect(),
    };
    if redirects(program) {
        log::note(
            "the function calls bpf_redirect, which means interfaces by the kernel's numbers here, not ports",
        );
    }
    let metrics = asked.metrics.map(Endpoint::open).transpose()?;
    signal::install();
    let mut kernel = aside.with(|| Kernel::start(&wanted, asked.ports))?;
    aside.give_up_but_maps();
    screen::err(&format!(
        "serving {} in the kernel; ^C ends",
        asked.ports.join(", ")
    ));
    if let Some(endpoint) = &metrics {
        screen::err(&format!("metrics at http://{}/metrics", endpoint.address));
    }
    let began = Instant::now();
    let watched = Watched {
        metrics: metrics.as_ref(),
        mailboxes: &opened.mailboxes,
        notify: RefCell::new(notify),
        began,
    };
    let served = serve(&mut kernel, &mut asked, &watched);
    watched.notify.borrow_mut().end();
    // Who waits for an answer gets none, and need not wait.
    opened.mailboxes.iter().for_each(|mailbox| mailbox.close());
    let mut account = opened.close(served)?;
    timed(&mut account, began.elapsed());
    account.objects = kernel.objects();
    account.memory = Memory::predict(0, 0).measured();
    account.memory.objects = account.objects.iter().map(|o| o.bytes).sum();
    if let Some(pins) = pins {
        keep(&kernel, &pins, function, &mut account);
    }
    if let Some(failure) = asked.records.and_then(RecordWriter::finish) {
        account.errors.push(failure);
    }
    Ok(account)
}

/// Who may look at a run while it lasts.
struct Watched<'a> {
    metrics: Option<&'a Endpoint>,
    mailboxes: &'a [Arc<Mailbox>],
    notify: RefCell<Notify>,
    began: Instant,
}

/// What has happened so far. The kernel's processors stand for one worker, whose time nobody measures.
fn so_far(kernel: &Kernel, began: Instant) -> Result<Account, PortError> {
    let mut account = kernel.account()?;
    timed(&mut account, began.elapsed());
    account.workers.push(WorkerAccount {
        worker: 0,
        packets: account.read,
        ..WorkerAccount::default()
    });
    Ok(account)
}

/// Waits for the end; the account of the function, taken off its interfaces.
fn serve(
    kernel: &mut Kernel,
    asked: &mut Asked<'_>,
    watched: &Watched<'_>,
) -> Result<Account, Failure> {
    let (metrics, began) = (watched.metrics, watched.began);
    let mut looked = Instant::now();
    let (mut failed, mut records) = (None, std::collections::BTreeMap::<String, u64>::new());
    let mut take = |kernel: &Kernel, patience| {
        for (object, bytes) in kernel.records(patience) {
            if let Some(writer) = &mut asked.records {
                writer.write(&object, now(), &Record { object: 0, bytes });
            }
            *records.entry(object).or_default() += 1;
        }
    };
    let stop = signal::flag();
    let mut ordered = false;
    while failed.is_none() && !ordered && !stop.load(Ordering::Relaxed) {
        let left = asked.time.map(|t| t.saturating_sub(began.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            break;
        }
        take(kernel, left.map_or(TURN, |left| left.min(TURN)));
        let counts = || so_far(kernel, began).unwrap_or_default();
        let mut orders = watched.mailboxes.iter().map(|m| m.attend(&counts));
        ordered = orders.any(|order| order.is_some());
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            let words = asked.ports.join(", ");
            watched.notify.borrow_mut().in_kernel(&words);
            failed = kernel.look().err();
            if let Some(endpoint) = metrics {
                endpoint.update(so_far(kernel, began)?, None);
            }
        }
    }
    let facts = kernel.account()?.facts;
    kernel.detach();
    take(kernel, Duration::ZERO);
    let mut account = kernel.account()?;
    account.facts = facts;
    account.interrupted = ordered || stop.load(Ordering::Relaxed);
    account.records = records;
    account.errors.extend(failed.as_ref().map(failure));
    Ok(account)
}

/// The function's program, if the kernel can run it with what was given.
fn fits<'a>(asked: &Asked<'a>) -> Result<&'a Program, Failure> {
    if let Some(given) = asked.given {
        return Err(Failure::wrong(format!("xdp: {given} has no meaning in the kernel"))
            .help("name the interfaces with --ports xdp:IF,xdp:IF; the kernel runs one function on all cores"));
    }
    if let Some(other) = asked.ports.iter().find(|w| !xdp::names(w)) {
        return Err(Failure::wrong(format!(
            "{other} is not in the kernel, as others of --ports are"
        ))
        .help("give xdp: for every port, or for none"));
    }
    let Some(program) = &asked.function.program else {
        return Err(
            Failure::wrong("xdp: a module alone cannot run in the kernel")
                .help("give the function's source or its object"),
        );
    };
    match program.dialect {
        Dialect::Xdp => Ok(program),
        Dialect::Handlers => Err(Failure::wrong(format!(
            "xdp: {} is written with handlers (ON_PACKET), whose state the kernel does not have",
            program.name
        ))
        .help("use afxdp:IF; functions with SEC(\"xdp\") run in the kernel")),
    }
}

/// Whether a function names interfaces by itself.
fn redirects(program: &Program) -> bool {
    let mut insns = program.functions.iter().flat_map(|f| &f.insns);
    insns.any(|i| matches!(i, Insn::Call { helper } if *helper == REDIRECT))
}

/// Writes what pinned maps hold.
fn keep(kernel: &Kernel, pins: &Pins, function: &Function, account: &mut Account) {
    for object in pins.objects() {
        let Ok(info) = function.exposed.info(*object) else {
            continue;
        };
        match kernel.entries(&info.name) {
            Err(error) => account.errors.push(failure(&error)),
            Ok(entries) => {
                if let Err(trouble) = pins.write(&function.exposed, *object, &entries) {
                    account.errors.push(accounts::Failure {
                        error: trouble.what,
                        help: trouble.help.unwrap_or_default(),
                    });
                }
            }
        }
    }
}

fn failure(error: &PortError) -> accounts::Failure {
    accounts::Failure {
        help: error.help(),
        error: error.to_string(),
    }
}

fn timed(account: &mut Account, elapsed: Duration) {
    account.seconds = elapsed.as_secs_f64();
    account.mpps = account.read as f64 / 1e6 / account.seconds.max(1e-9);
}

/// ns since the epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos() as u64)
}
