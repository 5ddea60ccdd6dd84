//! The measurements that this machine allows, and their processors.

use std::rc::Rc;

use millrace::{Asked, Make};
use millrace_dataplane::place;

use super::row::Measured;
use crate::failure::Failure;
use crate::function;
use crate::strategy::Wished;

/// A function, and how it was made.
pub struct Subject {
    /// the word that names it
    pub word: String,
    /// how it is made
    pub make: Make,
    /// as it is on one core
    pub function: Rc<Measured>,
}

/// A function on so many cores.
pub struct Config {
    /// the function, on several workers with each one's part of what is divided
    pub function: Rc<Measured>,
    /// workers
    pub cores: usize,
    /// ns a packet charged on top
    pub charge: f64,
    /// it is what the others are compared with
    pub limit: bool,
}

/// The processors that may be used.
pub struct Machine {
    /// workers take the first, threads of the NIC the last
    pub cpus: Vec<usize>,
    nic_threads: Option<usize>,
}

impl Machine {
    /// The processors named, or those that this process may use.
    pub fn new(named: &[usize], nic_threads: Option<usize>) -> Result<Self, Failure> {
        let allowed = place::cpus();
        if let Some(cpu) = named.iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(
                Failure::wrong(format!("--cpus: processor {cpu} cannot be used"))
                    .help(format!("this process may use {allowed:?}")),
            );
        }
        if nic_threads == Some(0) {
            return Err(Failure::wrong("--nic-threads 0: a NIC needs a thread"));
        }
        let cpus = if named.is_empty() {
            allowed
        } else {
            named.to_vec()
        };
        Ok(Self { cpus, nic_threads })
    }

    /// Processors for so many workers, and for the NIC's threads; none when there are too few.
    pub fn place(&self, workers: usize) -> Option<(Vec<usize>, Vec<usize>)> {
        let rest = self.cpus.len().checked_sub(workers)?;
        let threads = self.nic_threads.unwrap_or(rest.min(workers));
        if workers == 0 || threads == 0 || threads > rest {
            return None;
        }
        let (first, last) = (
            self.cpus.get(..workers)?,
            self.cpus.get(self.cpus.len() - threads..)?,
        );
        Some((first.to_vec(), last.to_vec()))
    }
}

/// How a function can run on several cores.
pub struct Wish<'a> {
    /// `--strategy`
    pub strategy: Wished,
    /// the NIC that the plan is made for
    pub nic: &'a str,
    /// without a NIC: workers have their packets in their own memory
    pub memory: bool,
}

/// A function as it runs on so many cores here; or why it cannot.
pub fn possible(
    subject: &Subject,
    cores: usize,
    machine: &Machine,
    wish: &Wish<'_>,
) -> Result<Rc<Measured>, String> {
    if cores == 0 {
        return Err("a function needs at least one core".into());
    }
    let processors = machine.cpus.len();
    if wish.memory && cores > processors {
        return Err(format!(
            "{cores} workers need {cores} processors, and there are {processors}"
        ));
    }
    if !wish.memory && machine.place(cores).is_none() {
        let threads = machine.nic_threads.unwrap_or(1);
        return Err(format!(
            "{cores} workers and {threads} threads of the NIC need {} processors, and there are {processors} \
             (--memory needs none for the NIC)",
            cores + threads,
        ));
    }
    if cores == 1 {
        return Ok(subject.function.clone());
    }
    if subject.function.function.is_none() {
        return Err("chain files are measured on one core".into());
    }
    if wish.strategy == Wished::SEQUENTIAL {
        return Err("--strategy sequential runs on one core".into());
    }
    if wish.memory && [Wished::REPLICATE, Wished::HYBRID].contains(&wish.strategy) {
        return Err("--memory has no sequencer, which --strategy replicate and hybrid need".into());
    }
    let asked = Asked {
        cores,
        strategy: wish.strategy.0,
        nic: wish.nic,
        ..Asked::default()
    };
    let arranged = function::arrange(
        &subject.word,
        &subject.make,
        &[],
        &asked,
        (&[asked.strategy], None),
    );
    let function = arranged.and_then(|a| function::load(&subject.word, &a.divided(&subject.make)));
    let function = function.and_then(Measured::of);
    function.map(Rc::new).map_err(|failure| failure.what)
}

/// The processor's name.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The part of the time of some processors that is not idle now, over a tenth of a second; none where the system does not
/// say (proc(5), `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal).
pub fn busy(processors: &[usize]) -> Option<f64> {
    let before = ticks(&std::fs::read_to_string("/proc/stat").ok()?, processors)?;
    std::thread::sleep(std::time::Duration::from_millis(100));
    let after = ticks(&std::fs::read_to_string("/proc/stat").ok()?, processors)?;
    let all = after.1.saturating_sub(before.1);
    (all > 0).then(|| after.0.saturating_sub(before.0) as f64 / all as f64)
}

/// Ticks of work, and all ticks.
fn ticks(stat: &str, processors: &[usize]) -> Option<(u64, u64)> {
    let mut sum = (0, 0);
    for processor in processors {
        let name = format!("cpu{processor}");
        let mut words = stat
            .lines()
            .map(str::split_whitespace)
            .find_map(|mut words| (words.next() == Some(name.as_str())).then_some(words))?;
        for place in 0..8 {
            let ticks: u64 = words.next()?.parse().ok()?;
            sum.1 += ticks;
            if place != 3 && place != 4 {
                sum.0 += ticks;
            }
        }
    }
    Some(sum)
}

/// The kernel and its version.
pub fn system() -> String {
    let read = |file: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{file}"));
        text.unwrap_or_default().trim().to_owned()
    };
    format!("{} {}", read("ostype"), read("osrelease"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpus: usize, nic_threads: Option<usize>) -> Machine {
        Machine {
            cpus: (0..cpus).collect(),
            nic_threads,
        }
    }

    #[test]
    fn workers_and_the_nic_do_not_share_processors() {
        let of_two = machine(2, None);
        assert_eq!(of_two.place(1).unwrap(), (vec![0], vec![1]));
        assert!(of_two.place(2).is_none() && of_two.place(0).is_none());
        let of_16 = machine(16, None);
        let (workers, nic) = of_16.place(12).unwrap();
        assert_eq!((workers.len(), nic), (12, vec![12, 13, 14, 15]));
        assert_eq!(of_16.place(4).unwrap().1.len(), 4);
        assert_eq!(machine(16, Some(3)).place(1).unwrap().1, [13, 14, 15]);
        assert!(machine(1, None).place(1).is_none());
    }

    #[test]
    fn the_machine_has_a_name() {
        assert!(!processor().is_empty() && !system().trim().is_empty());
    }
}
