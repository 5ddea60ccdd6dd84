//! Classifiers in emitted code, one by one and by bursts, against a scan of their rules and against the interpreter; rules that
//! are replaced between bursts.

use std::sync::Arc;

use millrace_classify::{Budget, Classifier, Field, Form, Key, Order, Rules};
use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::{Arrival, Burst, Layout};
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{self, ModuleOptions};
use millrace_tests::command::root;
use rand::rand_core::Rng;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ALWAYS: &str = "#define MR_CACHE_BYTES 0\n#define MR_FEW 0u\n";
/// Bytes of the key of tests/programs/classes.c.
const KEY: usize = 40;
const CLASSES: u32 = 7;
/// So that rules that explode do so soon.
const SMALL: Budget = Budget {
    bytes: 1 << 22,
    steps: 500_000,
    pairs: 1 << 20,
};

fn key() -> Key {
    let field = |name: &str, offset, bytes, order| Field {
        name: name.into(),
        offset,
        bytes,
        order,
    };
    let fields = vec![
        field("kind", 0, 1, Order::Network),
        field("address", 1, 16, Order::Network),
        field("port", 18, 2, Order::Network),
        field("mark", 20, 4, Order::Host),
        field("tag", 24, 8, Order::Host),
        field("host", 32, 4, Order::Network),
        field("more", 36, 4, Order::Host),
    ];
    Key::new(KEY as u32, fields).unwrap()
}

/// Rules whose words have few values, so that they meet, and a key is in some.
fn rules(random: &mut ChaCha8Rng, count: usize) -> Rules {
    let key = key();
    let mut rules = Rules::new(key.clone(), CLASSES, 4096);
    for _ in 0..count {
        let range = |max: u32, random: &mut ChaCha8Rng| match random.random_range(0..4) {
            0 | 1 => (0, max),
            2 => {
                let x = value(max, random);
                (x, x)
            }
            _ => {
                let (a, b) = (value(max, random), value(max, random));
                (a.min(b), a.max(b))
            }
        };
        let ranges: Vec<_> = key.words().iter().map(|w| range(w.max(), random)).collect();
        rules
            .push_box(&ranges, random.random_range(0..CLASSES), 0)
            .unwrap();
    }
    rules
}

fn value(max: u32, random: &mut ChaCha8Rng) -> u32 {
    let x = match random.random_range(0..3) {
        0 => random.random_range(0..6),
        1 => max - random.random_range(0..3),
        _ => 0x8000_0000_u32
            .wrapping_add(random.random_range(0..3))
            .wrapping_sub(1),
    };
    x & max
}

fn keys(random: &mut ChaCha8Rng, count: usize) -> Vec<Vec<u8>> {
    let key = key();
    let draw = |random: &mut ChaCha8Rng| {
        let words: Vec<u32> = key.words().iter().map(|w| value(w.max(), random)).collect();
        let mut bytes = key.join(&words);
        // What is in no field does not matter.
        bytes[17] = random.next_u32() as u8;
        bytes
    };
    (0..count).map(|_| draw(random)).collect()
}

/// The class of the key and of what the program makes of it next, as it writes them.
fn wanted(rules: &Rules, bytes: &[u8]) -> [u8; 2] {
    let class = |bytes: &[u8]| rules.scan(&rules.key().split(bytes)) as u8;
    let first = class(bytes);
    let mut next = bytes.to_vec();
    next[0] = first;
    [first, class(&next)]
}

struct Run {
    instance: Instance,
    prefetch: bool,
}

impl Run {
    fn classes(&mut self, keys: &[Vec<u8>]) -> Vec<[u8; 2]> {
        let mut out = Vec::new();
        for part in keys.chunks(40) {
            let mut burst = Burst::new(40, 2, Layout::Pooled);
            for bytes in part {
                let frame = [bytes.as_slice(), &[0xff; 24]].concat();
                assert!(burst.push(&frame, Arrival::default()));
            }
            self.instance.burst(0, self.prefetch, &mut burst);
            out.extend((0..part.len()).map(|i| {
                let bytes = burst.outcome(i).unwrap().bytes;
                [bytes[KEY], bytes[KEY + 1]]
            }));
        }
        out
    }
}

#[test]
fn emitted_code_gives_the_class_of_a_scan() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let tools = toolchain::find(&cache).unwrap();
    let fastpath = cache.headers().unwrap().join("fastpath");
    let source = root().join("tests/programs/classes.c");
    let built =
        millrace_emit::build(&cache, &source, &[], &Default::default(), &mut |_| {}).unwrap();
    let text =
        millrace_emit::alone::emit(&built.program, &built.checked.unwrap(), "module.c").unwrap();
    assert!(
        text.contains("classifier_tokens("),
        "a burst is classified at once"
    );
    assert!(
        text.contains("slot_holds(early, "),
        "the second pass goes on with what the first found"
    );
    // With this machine's instructions, and with those of any x86-64.
    let mut random = ChaCha8Rng::seed_from_u64(24);
    for (name, prelude) in [
        ("native", ""),
        ("plain", "#undef __AVX512F__\n#undef __AVX2__\n"),
        ("avx2", "#undef __AVX512F__\n"),
    ] {
        let file = folder.path().join(format!("{name}.c"));
        let module = folder.path().join(format!("{name}.so"));
        std::fs::write(&file, format!("{ALWAYS}{prelude}{text}")).unwrap();
        toolchain::compile_module(&tools, &file, &fastpath, &module, ModuleOptions::default())
            .unwrap();
        let module = Arc::new(Module::load(&module).unwrap());
        let mut runs = [true, false].map(|prefetch| Run {
            instance: Instance::create(module.clone(), &Config::default()).unwrap(),
            prefetch,
        });
        let keys = keys(&mut random, 400);
        for run in &mut runs {
            assert_eq!(run.classes(&keys[..40]), vec![[0, 0]; 40], "no rules");
        }
        let mut forms = [0, 0];
        for count in [1, 3, 20, 60, 25, 400] {
            let rules = rules(&mut random, count);
            for budget in [SMALL, Budget { steps: 0, ..SMALL }] {
                let made = Arc::new(Classifier::build(rules.clone(), &budget));
                forms[usize::from(made.form() == Form::Trees)] += 1;
                for run in &mut runs {
                    // The rules before give way to these, between two bursts.
                    run.instance.set_rules(0, Some(made.clone())).unwrap();
                    let got = run.classes(&keys);
                    for (bytes, got) in keys.iter().zip(got) {
                        assert_eq!(
                            got,
                            wanted(&rules, bytes),
                            "{name} {count} {:?}",
                            made.form()
                        );
                    }
                }
                // Two instances and this test hold it; the one before is held by nobody.
                assert_eq!(Arc::strong_count(&made), 3);
            }
        }
        assert!(forms.iter().all(|n| *n > 0), "{forms:?}");
        let [mut run, _] = runs;
        let other = Rules::new(Key::flow4(), CLASSES, 8);
        assert!(
            run.instance
                .set_rules(
                    0,
                    Some(Arc::new(Classifier::build(other, &Budget::default())))
                )
                .is_err()
        );
        let mut more = Rules::new(key(), CLASSES + 1, 8);
        let all: Vec<_> = key().words().iter().map(|w| (0, w.max())).collect();
        more.push_box(&all, CLASSES, 0).unwrap();
        assert!(
            run.instance
                .set_rules(
                    0,
                    Some(Arc::new(Classifier::build(more, &Budget::default())))
                )
                .is_err()
        );
    }
}

#[test]
fn saved_rules_classify_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(&folder.path().join("cache")).unwrap();
    let source = root().join("tests/programs/classes.c");
    let built =
        millrace_emit::build(&cache, &source, &[], &Default::default(), &mut |_| {}).unwrap();
    let module = Arc::new(Module::load(&built.module).unwrap());
    let mut random = ChaCha8Rng::seed_from_u64(25);
    let rules = rules(&mut random, 50);
    let create = || Instance::create(module.clone(), &Config::default()).unwrap();
    let mut first = create();
    let empty = first.save(0, 0).unwrap();
    let made = Classifier::build(rules.clone(), &SMALL);
    first.set_rules(0, Some(Arc::new(made))).unwrap();
    let content = first.save(0, 0).unwrap();
    let mut second = create();
    assert_eq!(second.load(0, &content, 0, 0).unwrap(), 50);
    let keys = keys(&mut random, 200);
    let mut run = Run {
        instance: second,
        prefetch: true,
    };
    let want: Vec<_> = keys.iter().map(|k| wanted(&rules, k)).collect();
    assert_eq!(run.classes(&keys), want);
    assert!(want.iter().any(|w| w[0] > 0));
    assert_eq!(run.instance.load(0, &empty, 0, 0).unwrap(), 0);
    assert_eq!(run.classes(&keys[..5]), vec![[0, 0]; 5]);
}
