use super::*;
use crate::frame::config::BindPolicy;
use crate::frame::records::fixture::{host, machine};
use crate::frame::records::BoundProcess;
use crate::frame::values::binding::{remedy, unbound_reason};

fn bound_process() -> BoundProcess {
    BoundProcess { process: 4711, program: "beff-raw".into(), cpus: "0".into() }
}

/// Two hosts of two ranks; `change` applies to the first one.
fn machine_with(asked: BindPolicy, change: impl Fn(&mut HostBinding)) -> MachineRecord {
    let mut machine = machine(vec![host("a", 2), host("b", 2)], &[]);
    let binding = machine.binding.as_mut().unwrap();
    (binding.requested, binding.launcher) = (asked, None);
    change(&mut binding.hosts[0]);
    machine
}

#[test]
fn hosts_with_the_same_binding_are_one_line() {
    let alike = machine_with(BindPolicy::Auto, |_| {});
    assert_eq!(lines(&alike), ["each of 2 ranks on a core since before the start: CPUs 0-1"]);
    let other = machine_with(BindPolicy::Auto, |h| h.state = BindState::Program);
    let other = lines(&other);
    assert_eq!(other.len(), 2);
    assert_eq!(other[0], "a: a CPU for each of 2 ranks by --bind auto: 0-1 of 0-1");
    assert!(other[1].starts_with("b: each of 2 ranks on a core"));
    let mut changed = alike;
    changed.binding.as_mut().unwrap().launcher = Some("x".into());
    assert_eq!(lines(&changed)[1], "launcher option x");
    changed.binding = None;
    assert_eq!((lines(&changed).len(), binding_summary(None).as_str()), (0, "not recorded"));
}

/// Every state as a line, as a fact of a comparison, as a reason and as a next step.
#[test]
fn every_bind_state_has_text() {
    let refused = BindState::Refused { message: "sched_setaffinity to CPUs 0: EPERM".into() };
    let states = [
        BindState::Program,
        BindState::Before,
        BindState::NotAsked,
        BindState::Alone,
        BindState::TooFewCpus { ranks: 2, cpus: 1 },
        BindState::Neighbours { free_cpus: 1, first: bound_process() },
        BindState::Busy { other_process_percent: 137 },
        refused,
    ];
    let mut text = String::new();
    for state in states {
        let (because, remedy) = (unbound_reason(&state), remedy(Some(&state)));
        assert!(remedy.ends_with('.'));
        for several in [false, true] {
            let machine = machine_with(BindPolicy::Core, |h| {
                h.state = state.clone();
                if several {
                    h.cores = Some(1);
                    h.neighbour = Some(bound_process());
                    h.ranks.iter_mut().for_each(|r| r.cores = Some(2));
                }
            });
            text += &format!("{}\n  {}\n", lines(&machine)[0], binding_summary(machine.binding.as_ref()));
        }
        text += &format!("  because{because}\n  -> {remedy}\n");
    }
    insta::assert_snapshot!("binding", text);
}
