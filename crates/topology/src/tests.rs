//! Topologies and changes of them.

use super::*;

/// Every port leads back to where it came from.
fn sound(topology: &Topology) {
    for element in 0..topology.elements() {
        for (end, port) in topology.ports(element).iter().zip(0..) {
            assert_eq!(topology.lead(*end), Some(at(element, port)), "{topology:?}");
        }
    }
}

#[test]
fn lines_are_changed_into_lines() {
    let line = Topology::line(3);
    assert!(line.is_line() && !line.is_alone() && Topology::alone(2).is_line());
    assert!(Topology::alone(2).is_alone() && !Topology::alone(3).is_line());
    let cases = [
        (
            line.insert(at(0, 1), false),
            vec![Some(0), None, Some(1), Some(2)],
        ),
        (
            line.insert(at(0, 0), true),
            vec![None, Some(0), Some(1), Some(2)],
        ),
        (
            line.insert(End::Out(1), true),
            vec![Some(0), Some(1), Some(2), None],
        ),
        (line.remove(0), vec![Some(1), Some(2)]),
        (line.remove(1), vec![Some(0), Some(2)]),
        (line.remove(2), vec![Some(0), Some(1)]),
        (
            line.shift(0, at(1, 1), false),
            vec![Some(1), Some(0), Some(2)],
        ),
        (
            line.shift(0, at(2, 1), false),
            vec![Some(1), Some(2), Some(0)],
        ),
        (
            line.shift(2, at(0, 0), true),
            vec![Some(2), Some(0), Some(1)],
        ),
        (line.reorder(&[2, 0, 1]), vec![Some(2), Some(0), Some(1)]),
        (line.replace(1, 2), vec![Some(0), None, Some(2)]),
    ];
    for (done, was) in cases {
        let done = done.unwrap();
        assert_eq!(done.was, was);
        assert!(done.topology.is_line(), "{done:?}");
        sound(&done.topology);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let line = Topology::line(2);
    assert_eq!(line.reorder(&[0, 0]), Err(TopologyError::Order));
    assert_eq!(line.reorder(&[0]), Err(TopologyError::Order));
    assert!(line.replace(0, 3).is_err() && line.replace(7, 2).is_err());
    assert!(line.insert(at(0, 2), true).is_err() && line.remove(2).is_err());
    assert_eq!(line.shift(0, at(0, 1), true), Err(TopologyError::Cycle(0)));
    assert_eq!(Topology::line(1).remove(0), Err(TopologyError::Count(0)));
    assert!(
        Topology::line(MOST_ELEMENTS)
            .insert(at(0, 0), true)
            .is_err()
    );
}

/// A function of three ports, with an element behind each of two.
#[test]
fn trees_are_built_in_the_order_they_are_run_in() {
    let joins = [(at(0, 1), at(2, 0)), (at(2, 1), at(1, 0))];
    let entries = [at(0, 0), at(1, 1), at(2, 2)];
    let built = Topology::of(&[2, 2, 3], &joins, &entries).unwrap();
    assert_eq!(built.was, [Some(0), Some(2), Some(1)]);
    sound(&built.topology);
    assert_eq!(built.topology.ports(1), [at(0, 1), at(2, 0), End::Out(2)]);
    let put = built.topology.insert(at(1, 2), false).unwrap();
    sound(&put.topology);
    assert_eq!(put.topology.elements(), 4);
    assert_eq!(built.topology.remove(1), Err(TopologyError::NotTwo(1)));
    assert_eq!(
        built.topology.reorder(&[0, 1, 2]),
        Err(TopologyError::NotLine)
    );
    let back = put
        .topology
        .remove(put.was.iter().position(Option::is_none).unwrap());
    assert_eq!(back.unwrap().topology, built.topology);
}

#[test]
fn connections_are_checked() {
    let new = Topology::of;
    let line = [(at(0, 1), at(1, 0))];
    let ends = [at(0, 0), at(1, 1)];
    assert_eq!(
        new(&[2, 2], &line, &ends).unwrap().topology,
        Topology::line(2)
    );
    let cases = [
        (
            new(&[2, 2], &[], &ends),
            TopologyError::Unconnected(at(0, 1)),
        ),
        (
            new(&[2, 2], &[line[0], line[0]], &ends),
            TopologyError::Twice(at(0, 1)),
        ),
        (
            new(&[2, 2], &line, &[at(0, 0), at(0, 0)]),
            TopologyError::Twice(at(0, 0)),
        ),
        (
            new(&[2, 2], &[(at(0, 1), at(2, 0))], &ends),
            TopologyError::Unknown(at(2, 0)),
        ),
        (
            new(&[2], &[(at(0, 1), at(0, 1))], &[at(0, 0)]),
            TopologyError::Twice(at(0, 1)),
        ),
        (
            new(&[3], &[(at(0, 1), at(0, 2))], &[at(0, 0)]),
            TopologyError::Cycle(0),
        ),
        (
            new(
                &[2, 2, 2],
                &[(at(0, 1), at(1, 0)), (at(2, 0), at(2, 1))],
                &ends,
            ),
            TopologyError::Apart(2),
        ),
        (
            new(
                &[3, 2, 3],
                &[
                    (at(0, 1), at(1, 0)),
                    (at(1, 1), at(2, 0)),
                    (at(2, 1), at(0, 2)),
                ],
                &[at(0, 0), at(2, 2)],
            ),
            TopologyError::Cycle(2),
        ),
        // A joint leads nowhere else, and is no port of the chain.
        (
            new(
                &[2, 2, 2],
                &[(at(0, 1), at(1, 0)), (at(1, 0), at(2, 0))],
                &ends,
            ),
            TopologyError::Twice(at(1, 0)),
        ),
        (
            new(&[2, 2], &line, &[at(0, 0), at(1, 1), at(1, 0)]),
            TopologyError::Twice(at(1, 0)),
        ),
        (new(&[], &[], &[]), TopologyError::Count(0)),
    ];
    for (got, error) in cases {
        match got {
            Err(TopologyError::Cycle(_)) if matches!(error, TopologyError::Cycle(_)) => {}
            got => assert_eq!(got, Err(error)),
        }
    }
}

/// Whether connections lead to higher numbers.
fn leads_on(topology: &Topology, joints: &[End]) {
    for element in 0..topology.elements() {
        for (end, port) in topology.ports(element).iter().zip(0..) {
            let back = topology.lead(*end) == Some(at(element, port));
            assert!(back || joints.contains(end), "{topology:?}");
            if let (End::Element { element: to, .. }, false) = (*end, back) {
                assert!(to > element, "{topology:?}");
            }
        }
    }
}

/// An element in front, two behind it, and one behind these: by two ports, or by one.
#[test]
fn paths_that_join_are_run_in_an_order_along_connections() {
    let front = [(at(3, 1), at(2, 0)), (at(3, 2), at(0, 0))];
    let apart = [(at(2, 1), at(1, 0)), (at(0, 1), at(1, 1))];
    let joins = [front, apart].concat();
    let entries = [at(3, 0), at(1, 2)];
    let built = Topology::of(&[2, 3, 2, 3], &joins, &entries).unwrap();
    assert_eq!(built.was, [Some(3), Some(2), Some(0), Some(1)]);
    sound(&built.topology);
    assert_eq!(built.topology.ports(3), [at(1, 1), at(2, 1), End::Out(1)]);

    let joint = [(at(2, 1), at(1, 0)), (at(0, 1), at(1, 0))];
    let joins = [front, joint].concat();
    let built = Topology::of(&[2, 2, 2, 3], &joins, &[at(3, 0), at(1, 1)]).unwrap();
    assert_eq!(built.was, [Some(3), Some(2), Some(0), Some(1)]);
    let diamond = built.topology;
    leads_on(&diamond, &[at(3, 0)]);
    assert_eq!(diamond.ports(1), [at(0, 1), at(3, 0)]);
    assert_eq!(diamond.ports(2), [at(0, 2), at(3, 0)]);
    assert_eq!(diamond.ports(3), [at(1, 1), End::Out(1)]);
    // What stands before the joint is met by packets of both paths, what stands on a path by its own.
    let before = diamond.insert(at(3, 0), true).unwrap();
    leads_on(&before.topology, &[at(3, 0)]);
    assert_eq!(before.topology.ports(1)[1], at(3, 0));
    assert_eq!(before.topology.ports(2)[1], at(3, 0));
    assert_eq!(before.topology.ports(3), [at(1, 1), at(4, 0)]);
    let on = diamond.insert(at(2, 1), false).unwrap();
    leads_on(&on.topology, &[at(4, 0)]);
    assert_eq!(on.was, [Some(0), Some(1), Some(2), None, Some(3)]);
    assert_eq!(on.topology.ports(3), [at(2, 1), at(4, 0)]);
    for (changed, element) in [(&before, 3), (&on, 3)] {
        let back = changed.topology.remove(element).unwrap();
        assert_eq!(back.topology, diamond);
    }
    // Without the joint both paths lead out; without a path its port leads to the joint.
    let out = diamond.remove(3).unwrap().topology;
    assert_eq!(
        (out.ports(1)[1], out.ports(2)[1]),
        (End::Out(1), End::Out(1))
    );
    let short = diamond.remove(1).unwrap().topology;
    leads_on(&short, &[at(2, 0)]);
    assert_eq!(short.ports(0)[1..], [at(2, 0), at(1, 0)]);
    // The first path's element behind the joint, and back.
    let shifted = diamond.shift(1, at(3, 1), false).unwrap().topology;
    leads_on(&shifted, &[at(2, 0)]);
    assert_eq!(shifted.ports(3), [at(2, 1), End::Out(1)]);
}

/// Two entries that lead to one element: no port leads twice to anything, and each element is reached.
#[test]
fn several_entries_may_lead_to_one_port() {
    let joins = [(at(0, 1), at(2, 0)), (at(1, 1), at(2, 0))];
    let entries = [at(1, 0), at(0, 0), at(2, 1)];
    let built = Topology::of(&[2, 2, 2], &joins, &entries).unwrap();
    assert_eq!(built.was, [Some(1), Some(0), Some(2)]);
    assert_eq!(built.topology.ports(2), [at(1, 1), End::Out(2)]);
}
