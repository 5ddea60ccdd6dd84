//! Every form of a classifier against a scan of the rules, on keys at all borders.

use millrace_classify::{
    Budget, Classifier, Field, Form, Interval, Key, Meter, NONE, Order, Rules, diagram,
};
use proptest::prelude::*;

/// Fields of one to four words, of either order, at odd places.
fn key() -> impl Strategy<Value = Key> {
    let sizes = prop::collection::vec(
        (
            prop_oneof![Just(1_u32), Just(2), Just(3), Just(4), Just(8), Just(16)],
            any::<bool>(),
            0..3_u32,
        ),
        1..5,
    );
    sizes.prop_map(|sizes| {
        let mut at = 0;
        let mut fields = Vec::new();
        for (i, (bytes, host, gap)) in sizes.into_iter().enumerate() {
            fields.push(Field {
                name: format!("f{i}"),
                offset: at + gap,
                bytes,
                order: if host { Order::Host } else { Order::Network },
            });
            at += gap + bytes;
        }
        Key::new(at, fields).unwrap()
    })
}

/// Numbers that lie near each other, near the ends and around borders of words, so that rules meet.
fn number(max: u128) -> impl Strategy<Value = u128> {
    let near = |at: u128| {
        (0..4_u128, any::<bool>()).prop_map(move |(d, up)| {
            if up {
                at.saturating_add(d)
            } else {
                at.saturating_sub(d)
            }
        })
    };
    prop_oneof![
        near(0),
        near(max),
        near(1 << 32),
        near(max / 2),
        near(0x0a00_0100),
        any::<u128>(),
    ]
    .prop_map(move |n| {
        if n > max {
            n % (max.saturating_add(1)).max(1)
        } else {
            n
        }
    })
}

fn interval(max: u128) -> impl Strategy<Value = Interval> {
    let bits = 128 - max.leading_zeros();
    prop_oneof![
        2 => Just(Interval { first: 0, last: max }),
        2 => (number(max), number(max)).prop_map(|(a, b)| Interval { first: a.min(b), last: a.max(b) }),
        1 => (number(max), 0..=bits).prop_map(move |(n, len)| {
            let below = max.checked_shr(len).unwrap_or(0);
            Interval { first: n & !below, last: n & !below | below }
        }),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    (key(), 1..5_u32).prop_flat_map(|(key, classes)| {
        let fields: Vec<_> = key
            .fields()
            .iter()
            .map(|f| interval(f.max()).boxed())
            .collect();
        let rules = prop::collection::vec((fields, 0..classes), 0..24);
        rules.prop_map(move |drawn| {
            let mut rules = Rules::new(key.clone(), classes, 4096);
            for (i, (fields, class)) in drawn.into_iter().enumerate() {
                // Wide intervals of several fields are many boxes: what does not fit is left out.
                let _ = rules.push(&fields, class, i as u32 + 1);
            }
            rules
        })
    })
}

/// Keys of which each word is at or beside a border of some rule.
fn keys(rules: &Rules) -> impl Strategy<Value = Vec<Vec<u32>>> + use<> {
    let words: Vec<_> = (0..rules.words())
        .map(|w| {
            let max = rules.key().words()[w].max();
            let mut at = vec![0, max, max / 3];
            for rule in rules.iter() {
                let (lo, hi) = rule.ranges[w];
                at.extend([lo, hi, lo.saturating_sub(1), hi.saturating_add(1).min(max)]);
            }
            prop::sample::select(at).boxed()
        })
        .collect();
    prop::collection::vec(words, 64)
}

fn drawn() -> impl Strategy<Value = (Rules, Vec<Vec<u32>>)> {
    rules().prop_flat_map(|rules| {
        let keys = keys(&rules);
        keys.prop_map(move |keys| (rules.clone(), keys))
    })
}

/// No room for diagrams.
const TREES: Budget = Budget {
    bytes: 0,
    steps: 0,
    pairs: 1 << 20,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_form_gives_the_class_of_a_scan((rules, keys) in drawn()) {
        let by_diagram = Classifier::build(rules.clone(), &Budget::default());
        let by_trees = Classifier::build(rules.clone(), &TREES);
        prop_assert_eq!(by_diagram.form(), Form::Diagram);
        prop_assert!(by_trees.redundant().len() == rules.len() || by_trees.form() == Form::Trees);
        for key in &keys {
            let class = rules.scan(key);
            prop_assert_eq!(by_diagram.find(key), class);
            prop_assert_eq!(by_trees.find(key), class);
            prop_assert_eq!(rules.key().split(&rules.key().join(key)), key.clone());
        }
    }

    #[test]
    fn a_class_has_a_witness_or_no_key((rules, keys) in drawn()) {
        let c = Classifier::build(rules.clone(), &Budget::default());
        for class in 0..rules.classes() {
            match c.witness(class) {
                Some(key) => prop_assert_eq!(rules.scan(key), class),
                None => prop_assert!(keys.iter().all(|k| rules.scan(k) != class)),
            }
        }
        let trees = Classifier::build(rules.clone(), &TREES);
        for class in 0..rules.classes() {
            if let Some(key) = trees.witness(class) {
                prop_assert_eq!(rules.scan(key), class);
            }
        }
    }

    #[test]
    fn rules_say_the_same_in_words_as_in_fields(
        (key, a, x) in key().prop_flat_map(|key| {
            let fields: Vec<_> = key.fields().iter().map(|f| interval(f.max()).boxed()).collect();
            let numbers: Vec<_> = key.fields().iter().map(|f| number(f.max()).boxed()).collect();
            (Just(key), fields, numbers)
        })
    ) {
        let mut rules = Rules::new(key.clone(), 2, 1 << 16);
        prop_assume!(rules.push(&a, 1, 1).is_ok());
        // Every field's ends and their neighbours, the others as drawn.
        for (at, i) in a.iter().enumerate() {
            let max = key.fields()[at].max();
            for n in [i.first, i.last, i.first.saturating_sub(1), i.last.saturating_add(1).min(max), x[at]] {
                let mut x = x.clone();
                x[at] = n;
                let inside = a.iter().zip(&x).all(|(i, x)| (i.first..=i.last).contains(x));
                prop_assert_eq!(rules.scan(&words(&key, &x)), u32::from(inside));
            }
        }
    }

    #[test]
    fn equal_functions_are_one_node((rules, _) in drawn(), cut in 0..24_usize) {
        // The same list with its first rule again somewhere behind is the same function: canonical by construction.
        let order: Vec<usize> = (0..rules.words()).collect();
        let mut twice = Rules::new(rules.key().clone(), rules.classes(), 8192);
        for (i, rule) in rules.iter().enumerate() {
            twice.push_box(rule.ranges, rule.class, 0).unwrap();
            if i >= cut {
                let first = rules.get(0).unwrap();
                twice.push_box(first.ranges, first.class, 0).unwrap();
            }
        }
        let (mut a, root) = diagram(&rules, &order, &mut Meter::new(1 << 30)).unwrap();
        let (b, other) = diagram(&twice, &order, &mut Meter::new(1 << 30)).unwrap();
        prop_assert_eq!(a.reached(root).concat().len(), b.reached(other).concat().len());
        prop_assert_eq!(a.reached(root).iter().map(Vec::len).collect::<Vec<_>>(), b.reached(other).iter().map(Vec::len).collect::<Vec<_>>());
        // Merged with itself or with nothing it stays.
        let merged = a.merge(&millrace_classify::First, root, NONE, &mut Meter::new(1 << 30)).unwrap();
        prop_assert_eq!(merged, root);
    }
}

/// The words of a key whose fields have these numbers.
fn words(key: &Key, numbers: &[u128]) -> Vec<u32> {
    let of = |(i, number): (usize, &u128)| {
        let n = key.words().iter().filter(|w| w.field == i).count();
        (0..n)
            .rev()
            .map(|w| (number >> (32 * w)) as u32)
            .collect::<Vec<u32>>()
    };
    numbers.iter().enumerate().flat_map(of).collect()
}

#[test]
fn a_node_of_many_edges_has_several_blocks() {
    // 5,000 intervals at one level: four steps; every other one has the class.
    let key = Key::new(
        8,
        vec![Field {
            name: "x".into(),
            offset: 0,
            bytes: 4,
            order: Order::Network,
        }],
    )
    .unwrap();
    let mut rules = Rules::new(key, 2, 8192);
    for i in 0..5000_u32 {
        rules.push_box(&[(i * 1000, i * 1000 + 499)], 1, 0).unwrap();
    }
    let c = Classifier::build(rules, &Budget::default());
    assert_eq!(c.form(), Form::Diagram);
    for i in 0..5000_u32 {
        for (x, class) in [(0, 1), (499, 1), (500, 0), (999, 0)] {
            assert_eq!(c.find(&[i * 1000 + x]), class, "{i} {x}");
        }
    }
    assert_eq!(c.find(&[u32::MAX]), 0);
}
