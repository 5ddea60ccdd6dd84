//! Every NF with its prefetching passes and without: the same fate and bytes, whatever the packets.
//! Tables of tests are small enough for the cache, and the passes would stay out; here they never do.

use std::sync::Arc;

use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::{Arrival, Burst, Fate, Layout};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{self, ModuleOptions};
use millrace_object::Program;
use millrace_object::program::Role;
use millrace_tests::command::{captures, nfs, root};
use millrace_tests::packets::with_variants;
use millrace_turns::of_today;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const ALWAYS_COLD: &str = "#define MR_CACHE_BYTES 0\n#define MR_FEW 0u\n";

struct Way {
    instance: Instance,
    burst: Burst,
    prefetch: bool,
}

impl Way {
    fn new(program: &Program, module: &Arc<Module>, prefetch: bool) -> Self {
        let config = Config {
            initial: program.objects.iter().map(|o| o.initial.clone()).collect(),
            ..Config::default()
        };
        let mut instance = Instance::create(module.clone(), &config).unwrap();
        instance.start(0);
        Way {
            instance,
            burst: Burst::new(32, 2, Layout::Pooled),
            prefetch,
        }
    }

    fn run(&mut self, frames: &[Vec<u8>], from: usize) -> Vec<(Fate, Vec<u8>)> {
        self.burst.clear();
        for (i, frame) in frames.iter().enumerate() {
            let number = (from + i) as u64;
            let arrival = Arrival {
                number,
                port: (number / 3 % 2) as u32,
                time: 1_700_000_000_000_000_000 + number * 1_000_000,
                stamp: 0,
                wire: frame.len() as u32,
                home: 0,
                place: 0,
            };
            assert!(self.burst.push(frame, arrival));
        }
        self.instance.burst(0, self.prefetch, &mut self.burst);
        (0..frames.len())
            .map(|i| self.burst.outcome(i).unwrap())
            .map(|o| (o.fate, o.bytes.to_vec()))
            .collect()
    }
}

#[test]
fn prefetching_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let tools = toolchain::find(&cache).unwrap();
    let headers = cache.headers().unwrap();
    let mut with_passes = Vec::new();
    let programs = ["kept"].map(|name| {
        let source = root().join(format!("tests/programs/{name}.c"));
        (name.to_owned(), source)
    });
    let functions = nfs().into_iter().map(|name| {
        let source = root().join(format!("nfs/{name}/{name}.c"));
        (name, source)
    });
    let all = of_today(
        "functions with and without passes",
        functions.chain(programs),
        5,
    );
    for (name, source) in &all {
        let object = folder.path().join(format!("{name}.o"));
        toolchain::compile_nf(&tools, source, &headers.join("include"), &object)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let program = millrace_object::load_file(&object).unwrap();
        let packets = |role: &Role| matches!(role, Role::Xdp | Role::OnPacket);
        assert!(program.entries.iter().any(|e| packets(&e.role)), "{name}");
        let checked = millrace_check::check(&program, &Default::default()).unwrap();
        let text = millrace_emit::alone::emit(&program, &checked, "module.c").unwrap();
        let passes = text.contains("static void burst0(");
        if passes {
            with_passes.push(name.clone());
        }
        // As users have it, where there is something that the optimiser could get wrong.
        let options = ModuleOptions {
            unoptimised: !passes,
            ..ModuleOptions::default()
        };
        let file = folder.path().join(format!("{name}.c"));
        let module = folder.path().join(format!("{name}.so"));
        std::fs::write(&file, format!("{ALWAYS_COLD}{text}")).unwrap();
        toolchain::compile_module(&tools, &file, &headers.join("fastpath"), &module, options)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let module = Arc::new(Module::load(&module).unwrap());
        let mut random = ChaCha8Rng::seed_from_u64(11);
        for capture in captures() {
            let mut ways = [true, false].map(|prefetch| Way::new(&program, &module, prefetch));
            let frames = with_variants(&capture, &mut random).unwrap();
            for (number, frames) in frames.chunks(32).enumerate() {
                let [with, without] = ways.each_mut().map(|way| way.run(frames, number * 32));
                let differs = with.iter().zip(&without).position(|(a, b)| a != b);
                if let Some(at) = differs {
                    panic!(
                        "{name} over {}, packet {}: {:?} with the passes, {:?} without",
                        capture.display(),
                        number * 32 + at,
                        with[at].0,
                        without[at].0
                    );
                }
            }
        }
    }
    println!("with prefetching passes: {}", with_passes.join(", "));
    for name in [
        "firewall",
        "policer",
        "cl",
        "lb",
        "portknock",
        "heavyhitter",
        "nat",
        "kept",
    ] {
        assert!(
            all.iter().all(|(n, _)| n != name) || with_passes.iter().any(|n| n == name),
            "{name} has no passes"
        );
    }
}
