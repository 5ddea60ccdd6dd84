//! Packets one after another, from empty state.

use std::collections::BTreeSet;

use millrace_object::program::{ObjectId, Role};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::packets::Packets;
use crate::pair::Pair;
use crate::predict::Disagreement;
use crate::run::{Options, Validation};
use crate::trial::{Case, Content, Trial, takes_packets, with_contents};
use crate::witness::START;

/// Most settings of parameters under which packets are sent; the defaults get half of them.
const SETTINGS: usize = 16;
/// How many packets come between two firings of each timer.
const TIMER: u64 = 64;

impl Validation<'_> {
    /// Packets one after another, from empty state, under each setting.
    pub(crate) fn alone(&mut self, cases: &[Case], options: &Options) {
        let mut settings: Vec<Vec<Content>> = vec![Vec::new()];
        for case in cases {
            let params = self.params(&case.contents);
            if settings.len() < SETTINGS && !settings.contains(&params) {
                settings.push(params);
            }
        }
        let mut pool: Vec<Vec<u8>> = cases
            .iter()
            .map(|c| c.trial.packet.clone())
            .filter(|p| !p.is_empty())
            .collect();
        pool.extend(options.frames.iter().cloned());
        let mut reached = BTreeSet::new();
        let others = settings.len() as u64 - 1;
        let half = options.packets.div_ceil(2);
        for (i, contents) in settings.iter().enumerate() {
            let random = ChaCha8Rng::seed_from_u64(options.seed.wrapping_add(i as u64));
            let packets = Packets::new(random, pool.clone(), self.ports());
            let most = match (i, others) {
                (0, 0) => options.packets,
                (0, _) => half,
                _ => (options.packets - half).div_ceil(others),
            };
            let most = most.min(options.packets - self.findings.packets);
            self.round(contents, packets, most, &mut reached);
        }
        let ports = self.ports();
        let flood = |n: u64| {
            let random = ChaCha8Rng::seed_from_u64(options.seed.wrapping_sub(n + 1));
            Packets::new(random, pool.clone(), ports)
        };
        if options.packets > 0 {
            self.floods(cases, flood, &mut reached);
        }
        for entry in 0..self.charts.len() {
            let paths = self.charts.get(entry).map_or(0, |c| c.entry.paths.len());
            for path in (0..paths).filter(|p| !reached.contains(&(entry, *p))) {
                let rest = self.rest(entry, path, None);
                self.findings.not_reached.push(rest);
            }
        }
        self.findings.reached = reached.len();
    }

    /// How many ports packets come in by.
    fn ports(&self) -> u32 {
        match self.program.ports.len() {
            0 => 3,
            n => n as u32,
        }
    }

    /// The contents that parameters have, other globals being as at start.
    fn params(&self, contents: &[Content]) -> Vec<Content> {
        let settable = |object: &ObjectId| {
            let o = self.program.objects.get(object.0);
            o.is_some_and(|o| o.settable)
        };
        contents
            .iter()
            .filter(|c| settable(&c.0))
            .cloned()
            .collect()
    }

    fn round(
        &mut self,
        contents: &[Content],
        mut packets: Packets<ChaCha8Rng>,
        most: u64,
        reached: &mut BTreeSet<(usize, usize)>,
    ) {
        let program = with_contents(self.program, contents);
        let mut now = START;
        let of_role = |wanted: fn(Role) -> bool| -> Vec<usize> {
            let entries = program.entries.iter().enumerate();
            entries
                .filter(|(_, e)| wanted(e.role))
                .map(|(i, _)| i)
                .collect()
        };
        let takers: Vec<usize> = of_role(takes_packets)
            .into_iter()
            .filter(|e| !program.is_tail_call_target(*e))
            .collect();
        let timers = of_role(|r| matches!(r, Role::Every { .. }));
        let mut pair = match Pair::new(&program, self.module, now) {
            Ok(pair) => pair,
            Err(_) => return,
        };
        let mut waiting = of_role(|r| r == Role::OnStart);
        let mut sent = 0;
        while sent < most {
            let trial = if let Some(entry) = waiting.pop() {
                Trial::idle(entry, now)
            } else {
                if sent % TIMER == TIMER - 1 {
                    waiting.extend(&timers);
                }
                sent += 1;
                let Some(entry) = takers.get((sent % takers.len().max(1) as u64) as usize) else {
                    break;
                };
                packets.trial(*entry, now)
            };
            now = trial.time;
            let Some((judged, _)) = self.run("packets", &program, &mut pair, &trial) else {
                break;
            };
            self.tell("packets", &trial, &judged);
            if let Some(path) = judged.path
                && reached.insert((trial.entry, path))
            {
                packets.keep(&trial.packet);
            }
        }
        self.findings.packets += sent;
        if let Err(why) = pair.same_state() {
            let d = Disagreement {
                what: "execution",
                predicted: "emitted code and interpreter leave the same state".to_owned(),
                happened: why,
            };
            self.differ("packets", &Trial::idle(0, now), None, d);
        }
    }
}
