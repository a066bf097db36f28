//! The enumerator of executions gives every published verdict; the protocol of every single-pass kernel, read from
//! the PTX that NVRTC makes of it, is right with 2 to 5 tiles; and every ordering mutant, in the kernels or made here by
//! hand, is found, while what is harmless is not.
//!
//! The kernels need NVRTC and no GPU. `scripts/install-cuda.sh` installs it without root; without it those tests print
//! that they skipped, and fail if LOOKBACK_REQUIRE_CUDA_COMPILER is 1.
#![cfg(feature = "lab")]

use lookback::lab::axiomatic::litmus;

#[test]
fn every_litmus_test_has_its_published_verdict() {
    let mut wrong = Vec::new();
    for test in litmus::TESTS {
        let answer = test.run().unwrap_or_else(|error| panic!("{}: {error}", test.name));
        println!(
            "{:<50} {:?}, {} of {} executions consistent ({})",
            test.name,
            answer.verdict,
            answer.statistics.consistent,
            answer.statistics.candidates,
            test.origin.name()
        );
        if answer.verdict != test.verdict {
            wrong.push(format!("{}: {:?}, published {:?} ({})", test.name, answer.verdict, test.verdict, test.source));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(litmus::TESTS.len() >= 30);
}

#[test]
fn the_page_has_the_table_of_all_tests() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/memory-model.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let table = litmus::table();
    assert!(page.contains(&table), "docs/memory-model.md lacks this table:\n{table}");
}

#[cfg(feature = "cuda")]
mod common;

#[cfg(feature = "cuda")]
mod kernels {
    use super::common::compiler;
    use lookback::cuda::Architecture;
    use lookback::cuda::compile::{Compiler, Variant};
    use lookback::element::{ElementType, Instance, Operator};
    use lookback::kernels::mutant::{Kind, Mutant, mutant_number};
    use lookback::lab::axiomatic::extract::{ExtractError, extract};
    use lookback::lab::axiomatic::program::{Scope, Semantics};
    use lookback::lab::axiomatic::protocol::{self, Part, Report};
    use lookback::lab::axiomatic::sequences::{
        Counter, Layout, Protocol, RingBarrier, Role, Sequences, Status, Step, StepKind, Task,
    };
    use lookback::strategy::plan::{Kernel, KernelConfig};
    use lookback::strategy::{Alignment, Composition, Descriptor, Mode, Pattern, Strategy, TileOrder};
    use std::collections::{BTreeSet, HashMap};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, LazyLock, Mutex, OnceLock};

    const TILES: usize = 5;

    fn instance(descriptor: Descriptor) -> Instance {
        let element = if descriptor == Descriptor::Packed128 { ElementType::I64 } else { ElementType::U32 };
        Instance::new(element, Operator::Sum).expect("numbers have a sum")
    }

    fn ptx_of(
        compiler: &Compiler,
        kernel: Kernel,
        instance: Instance,
        descriptor: Descriptor,
        tile_order: TileOrder,
        mutant: &str,
    ) -> String {
        let config = KernelConfig {
            vt: 4,
            block_threads: 128,
            mode: Mode::Inclusive,
            pattern: Pattern::Shuffle,
            composition: Composition::ScanThenPropagate,
            descriptor,
            tile_order,
            alignment: Alignment::Any,
        };
        let mutant = if mutant.is_empty() { 0 } else { mutant_number(mutant) };
        let variant = Variant { mutant, ..Variant::default() };
        compiler
            .ptx(kernel, instance.into(), &config, Architecture { major: 9, minor: 0 }, variant)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Two tests ask for each; a compilation takes about a second, and whoever asks meanwhile waits for it.
    fn sequences(compiler: &Compiler, kernel: Kernel, descriptor: Descriptor, mutant: &str) -> Sequences {
        type Kept = Mutex<HashMap<(Kernel, Descriptor, String), Arc<OnceLock<Sequences>>>>;
        static KEPT: LazyLock<Kept> = LazyLock::new(Kept::default);
        let key = (kernel, descriptor, mutant.to_owned());
        let slot = KEPT.lock().expect("nobody fails with it").entry(key).or_default().clone();
        slot.get_or_init(|| extracted(compiler, kernel, descriptor, mutant)).clone()
    }

    fn extracted(compiler: &Compiler, kernel: Kernel, descriptor: Descriptor, mutant: &str) -> Sequences {
        let text = ptx_of(compiler, kernel, instance(descriptor), descriptor, TileOrder::Ticket, mutant);
        extract(&text).unwrap_or_else(|error| panic!("{} {descriptor} {mutant}: {error}", kernel.name()))
    }

    /// Whose value takes two words of 128 bits, a tag in each.
    fn of_two_words(
        compiler: &Compiler,
        kernel: Kernel,
        tile_order: TileOrder,
        mutant: &str,
    ) -> Result<Sequences, ExtractError> {
        let maps = Instance::new(ElementType::AffineMap, Operator::Affine).expect("maps are composed");
        extract(&ptx_of(compiler, kernel, maps, Descriptor::Packed128, tile_order, mutant))
    }

    /// Faults of a value of two words that show in every kernel: in what is read of it, and in what is stored or loaded at all.
    const OF_TWO_WORDS: [&str; 2] = ["packed_128_first_word_for_all", "packed_128_statuses_mixed"];
    const OF_A_WORD_LEFT_OUT: [&str; 2] =
        ["packed_128_publish_loop_a_round_short", "packed_128_read_loop_a_round_short"];

    const DESCRIPTORS: [Descriptor; 3] = [Descriptor::Packed64, Descriptor::Packed128, Descriptor::Split];
    const KERNELS: [(Kernel, Strategy); 4] = [
        (Kernel::Lookback, Strategy::Lookback),
        (Kernel::Chained, Strategy::Chained),
        (Kernel::OneWave, Strategy::OneWave),
        (Kernel::Lookahead, Strategy::Lookahead),
    ];

    fn check(sequences: &Sequences, tiles: usize) -> Report {
        protocol::check(sequences, tiles).unwrap_or_else(|error| panic!("{error}"))
    }

    fn line(name: &str, report: &Report) -> String {
        let parts = report.parts.iter().map(|part| {
            let verdict = if part.violation.is_some() { "violated" } else { "right" };
            let statistics = part.statistics;
            format!("{} {verdict} ({} of {})", part.part.name(), statistics.consistent, statistics.candidates)
        });
        let parts: Vec<String> = parts.collect();
        format!("{name}: {} tiles, {:.3} s: {}", report.tiles, report.elapsed().as_secs_f64(), parts.join(", "))
    }

    #[test]
    fn every_protocol_is_right_with_2_to_5_tiles() {
        let Some(compiler) = compiler("every_protocol_is_right_with_2_to_5_tiles") else { return };
        for (kernel, _) in KERNELS {
            for descriptor in DESCRIPTORS {
                for tile_order in [TileOrder::Ticket, TileOrder::Static] {
                    let text = ptx_of(&compiler, kernel, instance(descriptor), descriptor, tile_order, "");
                    let found = extract(&text).unwrap_or_else(|error| panic!("{error}"));
                    // Without tickets the start alone is another, which needs no more tiles.
                    let largest = if tile_order == TileOrder::Ticket { TILES } else { TILES - 2 };
                    for tiles in 2..=largest {
                        let report = check(&found, tiles);
                        println!("{}", line(&format!("{} {descriptor} {tile_order}", kernel.name()), &report));
                        if let Some((part, violation)) = report.violation() {
                            panic!("{} {descriptor}, {}: {violation}", kernel.name(), part.name());
                        }
                        // Something was looked at: nothing is right because it has no execution.
                        assert!(report.parts.iter().all(|part| part.statistics.consistent > 0), "{report:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_value_of_two_words_is_all_there_or_waited_for() {
        let Some(compiler) = compiler("a_value_of_two_words_is_all_there_or_waited_for") else { return };
        for (kernel, _) in KERNELS {
            for tile_order in [TileOrder::Ticket, TileOrder::Static] {
                let found = of_two_words(&compiler, kernel, tile_order, "").expect("it is understood");
                assert_eq!((found.layout, found.words()), (Layout::Packed128, 2));
                let all = found.publishes.iter().map(|publish| &publish.steps).chain(&found.reads);
                for steps in all.chain([&found.invalidate]) {
                    let words: Vec<usize> = steps.iter().filter_map(|step| step.role.word()).collect();
                    assert_eq!(words, [0, 1], "{steps:?}");
                }
                for tiles in 2..TILES {
                    let report = check(&found, tiles);
                    println!("{}", line(&format!("{} of two words, {tile_order}", kernel.name()), &report));
                    assert_eq!(report.violation(), None, "{}", kernel.name());
                    assert!(report.parts.iter().all(|part| part.statistics.consistent > 0), "{report:?}");
                }
            }
            let found = of_two_words(&compiler, kernel, TileOrder::Ticket, "").expect("it is understood");
            if kernel == Kernel::Lookback {
                // What is read first is overwritten, so that nobody compares its tags: no read of the protocol.
                let twice =
                    of_two_words(&compiler, kernel, TileOrder::Ticket, "second_read").expect("it is understood");
                assert_eq!(check(&twice, 3).violation(), None);
            }
            let one_cleared = edited(&found, |s| s.invalidate.truncate(1));
            assert_eq!(check(&one_cleared, 3).violation().expect("a violation").0, Part::HandOver);
            for mutant in OF_TWO_WORDS {
                let fault = of_two_words(&compiler, kernel, TileOrder::Ticket, mutant).expect("it is understood");
                let report = check(&fault, 3);
                let (part, violation) = report.violation().unwrap_or_else(|| panic!("{mutant} in {}", kernel.name()));
                println!("{mutant} in {}: {}", kernel.name(), violation.what);
                assert_eq!(part, Part::Composition, "{mutant} in {}", kernel.name());
            }
            for mutant in OF_A_WORD_LEFT_OUT {
                let error = of_two_words(&compiler, kernel, TileOrder::Ticket, mutant).expect_err(mutant);
                assert!(error.to_string().contains("every word"), "{mutant} in {}: {error}", kernel.name());
            }
        }
    }

    #[test]
    fn a_third_window_of_two_tiles_is_read() {
        let Some(compiler) = compiler("a_third_window_of_two_tiles_is_read") else { return };
        let tiles = 2 * protocol::NARROW_WINDOW + 2;
        for kernel in [Kernel::Lookback, Kernel::OneWave, Kernel::Lookahead] {
            let found = sequences(&compiler, kernel, Descriptor::Split, "");
            let check = |sequences: &Sequences| {
                protocol::check_part(sequences, tiles, Part::Composition).unwrap_or_else(|error| panic!("{error}"))
            };
            let report = check(&found);
            println!("{}: {report:?}", kernel.name());
            assert_eq!(report.violation, None);
            assert!(report.statistics.consistent >= report.programs, "every way has an execution: {report:?}");
            let weak = read(&found, with_semantics(Semantics::Relaxed));
            assert!(check(&weak).violation.is_some(), "{}", kernel.name());
        }
    }

    #[test]
    fn every_order_within_a_block_of_look_ahead_is_needed() {
        let Some(compiler) = compiler("every_order_within_a_block_of_look_ahead_is_needed") else { return };
        let found = sequences(&compiler, Kernel::Lookahead, Descriptor::Split, "");
        let ring = found.ring.as_ref().expect("warps with tasks");
        let (mut needed, mut others) = (0, Vec::new());
        for &task in Task::ALL {
            for (index, step) in ring.round(task).iter().enumerate() {
                let is_phase = matches!(step.kind, StepKind::Arrive | StepKind::Wait);
                if !is_phase && step.kind != StepKind::WarpBarrier {
                    continue;
                }
                let mut changed = vec![edited(&found, |s| {
                    drop(s.ring.as_mut().expect("a ring").rounds[task as usize].remove(index));
                })];
                if is_phase {
                    changed.push(edited(&found, |s| {
                        s.ring.as_mut().expect("a ring").rounds[task as usize][index].semantics = Semantics::Relaxed;
                    }));
                }
                for (sequences, how) in changed.iter().zip(["dropped", "relaxed"]) {
                    let what = format!("{task}: {index}, {step}: {how}");
                    match check(sequences, 3).violation() {
                        Some((part, violation)) => {
                            println!("{what}: {part}: {}", violation.what);
                            needed += 1;
                        }
                        None => others.push(what),
                    }
                }
            }
        }
        // Lanes meet behind each wait for what is no part of the protocol: the copies and shuffles that follow. The
        // arrival with the copy is the first of two by one thread, of which the second one releases for both.
        let is_of_platform = |what: &&String| !what.contains("bar.warp.sync") && !what.contains("expect_tx");
        assert_eq!(others.iter().filter(is_of_platform).count(), 0, "{others:?}");
        assert_eq!((needed, others.len()), (32, 9), "{others:?}");
        let end = edited(&found, |s| s.ring.as_mut().expect("a ring").end.clear());
        let report = check(&end, 3);
        assert_eq!(report.violation().expect("a violation").0, Part::HandOver, "the finder ends without the publisher");
    }

    #[test]
    fn every_size_of_value_is_understood() {
        let Some(compiler) = compiler("every_size_of_value_is_understood") else { return };
        let mut elements = BTreeSet::new();
        for instance in Instance::all().filter(|instance| elements.insert(instance.element())) {
            let text = ptx_of(&compiler, Kernel::Lookback, instance, Descriptor::Split, TileOrder::Ticket, "");
            let found = extract(&text).unwrap_or_else(|error| panic!("{instance}: {error}"));
            assert_eq!((found.protocol, found.layout), (Protocol::LOOK_BACK, Layout::Split), "{instance}");
            let report = check(&found, 3);
            assert!(report.violation().is_none(), "{instance}: {:?}", report.violation());
        }
    }

    #[test]
    fn the_sequences_are_those_of_the_source() {
        let Some(compiler) = compiler("the_sequences_are_those_of_the_source") else { return };
        let found = sequences(&compiler, Kernel::Lookback, Descriptor::Split, "");
        let statuses: Vec<Status> = found.publishes.iter().map(|publish| publish.status).collect();
        assert_eq!(statuses, [Status::Aggregate, Status::Prefix]);
        for (publish, slot) in found.publishes.iter().zip(0..) {
            let roles: Vec<Role> = publish.steps.iter().map(|step| step.role).collect();
            assert_eq!(roles, [Role::Value { aggregate: slot, prefix: slot }, Role::Tag]);
            assert_eq!(publish.steps[1].semantics, Semantics::Release);
            assert!(publish.steps[1].source.contains("split::publish"), "{}", publish.steps[1].source);
        }
        assert_eq!(found.reads.len(), 1, "{:?}", found.reads);
        assert_eq!(found.reads[0][0].semantics, Semantics::Acquire);
        assert_eq!(found.reads[0][1].role, Role::Value { aggregate: 0, prefix: 1 });
        let counters: Vec<Role> = found.resets.iter().map(|step| step.role).collect();
        assert_eq!(
            counters,
            [Counter::Ticket, Counter::Finished, Counter::Epochs].map(Role::Counter),
            "{:?}",
            found.resets
        );
        assert!(found.hand_over.iter().any(|step| matches!(step.kind, StepKind::Barrier(_))));
        for descriptor in [Descriptor::Packed64, Descriptor::Packed128] {
            let found = sequences(&compiler, Kernel::Chained, descriptor, "");
            assert_eq!(found.protocol, Protocol::CHAINED);
            assert_eq!(found.publishes.len(), 1);
            assert_eq!(found.publishes[0].status, Status::Prefix);
            let whole = Role::Word { word: 0, first: 0, halves: 2, elements: 1, is_asked: true };
            assert_eq!(found.publishes[0].steps[0].role, whole);
        }
        for descriptor in DESCRIPTORS {
            let found = sequences(&compiler, Kernel::OneWave, descriptor, "");
            assert_eq!(found.protocol, Protocol::ONE_WAVE);
            let statuses: Vec<Status> = found.publishes.iter().map(|publish| publish.status).collect();
            assert_eq!(statuses, [Status::Aggregate], "no inclusive prefix is published");
            // The loop over a lane's descriptors is unrolled in the PTX; the sequence is that of one.
            let of_one = if descriptor == Descriptor::Split { 2 } else { 1 };
            assert_eq!(found.reads.iter().map(Vec::len).collect::<Vec<_>>(), [of_one], "{:?}", found.reads);
            assert_eq!(found.hand_over.iter().filter(|step| step.role == Role::Shared).count(), 1);
            assert!(found.hand_over.iter().any(|step| matches!(step.kind, StepKind::Barrier(_))));
            assert!(found.result.iter().any(|step| step.kind == StepKind::Load), "{:?}", found.result);
            assert_eq!(found.ring, None);
        }
        for descriptor in DESCRIPTORS {
            let found = sequences(&compiler, Kernel::Lookahead, descriptor, "");
            assert_eq!((found.protocol, found.publishes.len()), (Protocol::LOOK_AHEAD, 1));
            let ring = found.ring.expect("warps with tasks");
            // One producer, which arrives twice for a tile; one other reducer; four warps that scan.
            assert_eq!(ring.expected, [1, 2, 1, 2, 4].map(Some));
            let meets = |task| -> Vec<(StepKind, RingBarrier)> {
                let of_step = |step: &Step| match step.role {
                    Role::Phase(barrier) => Some((step.kind, barrier)),
                    _ => None,
                };
                ring.round(task).iter().filter_map(of_step).collect()
            };
            use RingBarrier::{Drained, Drawn, Landed, Ready, Reduced};
            use StepKind::{Arrive, Wait};
            assert_eq!(meets(Task::Producer), [(Wait, Drained), (Arrive, Drawn), (Arrive, Landed), (Arrive, Landed)]);
            assert_eq!(meets(Task::FirstReducer), [(Wait, Landed), (Wait, Reduced), (Arrive, Ready)]);
            assert_eq!(meets(Task::OtherReducer), [(Wait, Landed), (Arrive, Reduced)]);
            assert_eq!(meets(Task::Finder), [(Wait, Drawn), (Arrive, Ready)]);
            assert_eq!(meets(Task::Scanner), [(Wait, Landed), (Wait, Ready), (Arrive, Drained)]);
        }
    }

    /// Of look-ahead, whose kernel takes long to compile, a fault in each place that the kernels share; in one layout.
    const OF_LOOK_AHEAD: [&str; 8] = [
        "packed_block_scope",
        "packed_128_vector",
        "relaxed_tag_store",
        "relaxed_tag_load",
        "ticket_block_scope",
        "stronger_ticket",
        "relaxed_finish",
        "finish_block_scope",
    ];

    /// The kernels and layouts in which a mutant can show.
    fn places(mutant: &Mutant) -> Vec<(Kernel, Descriptor)> {
        let (strategies, layouts) = (&mutant.when.strategies, &mutant.when.layouts);
        let kernels = KERNELS.into_iter().filter(|(_, name)| strategies.is_empty() || strategies.contains(name));
        let fits = |descriptor: &Descriptor| layouts.is_empty() || layouts.contains(descriptor);
        let places =
            kernels.flat_map(|(kernel, _)| DESCRIPTORS.into_iter().filter(fits).map(move |layout| (kernel, layout)));
        let is_tried = |&(kernel, layout): &(Kernel, Descriptor)| {
            let is_own = strategies.contains(&Strategy::Lookahead) || OF_LOOK_AHEAD.contains(&mutant.name.as_str());
            kernel != Kernel::Lookahead || is_own && (layouts.contains(&layout) || layout == Descriptor::Split)
        };
        places.filter(is_tried).collect()
    }

    #[test]
    fn every_ordering_mutant_of_the_kernels_is_found_and_no_harmless_one() {
        let name = "every_ordering_mutant_of_the_kernels_is_found_and_no_harmless_one";
        let Some(compiler) = compiler(name) else { return };
        let mut jobs = Vec::new();
        for mutant in Mutant::all().expect("mutants") {
            // Barriers that the protocol needs; those inside the scan of a tile are another matter.
            let is_barrier = [
                "start_barrier_dropped",
                "finish_barrier_dropped",
                "chained_finish_barrier_dropped",
                "one_wave_finish_barrier_dropped",
                "drained_wait_dropped",
                "landed_wait_dropped",
                "reduced_wait_dropped",
                "drained_too_early",
                "ready_wait_dropped",
            ]
            .contains(&mutant.name.as_str());
            let is_fault = mutant.kind == Kind::Ordering || is_barrier;
            // Those by rule have their rows in the table of `lookback stress --mutants`; those of other problems than the plain
            // scan are in no kernel here.
            if mutant.rule.is_some() || !mutant.when.problems.is_empty() || !is_fault && !mutant.is_harmless() {
                continue;
            }
            jobs.extend(places(mutant).into_iter().map(|place| (mutant, is_fault, place)));
        }
        // On all cores: each is compiled first.
        let next = AtomicUsize::new(0);
        let results = Mutex::new((0, 0, Vec::new()));
        let work = || {
            while let Some(&(mutant, is_fault, (kernel, descriptor))) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let what = format!("{mutant} in {} {descriptor}", kernel.name());
                let report = check(&sequences(&compiler, kernel, descriptor, &mutant.name), 3);
                println!("{}", line(&what, &report));
                let (found, harmless, failures) = &mut *results.lock().expect("nobody fails with it");
                match (report.violation(), is_fault) {
                    (None, true) => failures.push(format!("{what} is not found")),
                    (Some((part, violation)), false) => {
                        failures.push(format!("{what} is harmless, {}: {violation}", part.name()));
                    }
                    (Some(_), true) => *found += 1,
                    (None, false) => *harmless += 1,
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        let (found, harmless, failures) = results.into_inner().expect("nobody fails with it");
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(found >= 12 && harmless >= 4, "{found} faults and {harmless} harmless variants");
    }

    fn is_tag(step: &Step) -> bool {
        matches!(step.role, Role::Tag | Role::Word { .. })
    }

    fn with_semantics(semantics: Semantics) -> impl Fn(&mut Vec<Step>) {
        move |steps| steps.iter_mut().filter(|step| is_tag(step)).for_each(|step| step.semantics = semantics)
    }

    fn with_scope(scope: Scope) -> impl Fn(&mut Vec<Step>) {
        move |steps| steps.iter_mut().filter(|step| is_tag(step)).for_each(|step| step.scope = scope)
    }

    fn fence(sequential: bool, scope: Scope) -> Step {
        Step {
            kind: StepKind::Fence(sequential),
            role: Role::Nothing,
            semantics: Semantics::AcquireRelease,
            scope,
            opcode: String::from("fence"),
            source: String::new(),
        }
    }

    /// A fence next to the tag: before it in a publish, behind it in a read.
    fn with_fence(scope: Scope, behind: bool) -> impl Fn(&mut Vec<Step>) {
        move |steps| {
            let tag = steps.iter().position(is_tag).expect("a tag");
            steps.insert(tag + usize::from(behind), fence(false, scope));
        }
    }

    /// The word in two accesses of half its width, in that order.
    fn in_halves(order: [u8; 2]) -> impl Fn(&mut Vec<Step>) {
        move |steps| {
            let word = steps.iter().position(is_tag).expect("a word");
            let whole = steps.remove(word);
            for half in order {
                let role = Role::Word { word: 0, first: half, halves: 1, elements: 1, is_asked: true };
                steps.insert(word, Step { role, ..whole.clone() });
            }
        }
    }

    fn as_vector(steps: &mut Vec<Step>) {
        for step in steps {
            if let Role::Word { elements, .. } = &mut step.role {
                *elements = 2;
            }
        }
    }

    fn edited(base: &Sequences, edit: impl FnOnce(&mut Sequences)) -> Sequences {
        let mut sequences = base.clone();
        edit(&mut sequences);
        sequences
    }

    /// With a change to the steps of all publishes.
    fn published(base: &Sequences, edit: impl Fn(&mut Vec<Step>)) -> Sequences {
        edited(base, |s| s.publishes.iter_mut().for_each(|publish| edit(&mut publish.steps)))
    }

    /// With a change to the steps of all reads.
    fn read(base: &Sequences, edit: impl Fn(&mut Vec<Step>)) -> Sequences {
        edited(base, |s| s.reads.iter_mut().for_each(edit))
    }

    /// With a change to both.
    fn both(base: &Sequences, edit: impl Fn(&mut Vec<Step>)) -> Sequences {
        read(&published(base, &edit), &edit)
    }

    /// With relaxed tags between fences.
    fn fenced(base: &Sequences, scope: Scope) -> Sequences {
        let relaxed = both(base, with_semantics(Semantics::Relaxed));
        read(&published(&relaxed, with_fence(scope, false)), with_fence(scope, true))
    }

    #[test]
    fn each_weakening_by_hand_is_found() {
        let Some(compiler) = compiler("each_weakening_by_hand_is_found") else { return };
        let split = sequences(&compiler, Kernel::Lookback, Descriptor::Split, "");
        let packed = sequences(&compiler, Kernel::Lookback, Descriptor::Packed64, "");
        let wide = sequences(&compiler, Kernel::Chained, Descriptor::Packed128, "");
        let fenced = fenced(&split, Scope::Gpu);
        let is_fence = |step: &Step| matches!(step.kind, StepKind::Fence(_));
        let without_fence = |steps: &mut Vec<Step>| steps.retain(|step| !is_fence(step));
        let fence_of_block = |steps: &mut Vec<Step>| {
            steps.iter_mut().filter(|step| is_fence(step)).for_each(|step| step.scope = Scope::Cta);
        };
        let one_slot = |steps: &mut Vec<Step>| {
            for step in steps {
                if let Role::Value { aggregate, prefix } = &mut step.role {
                    (*aggregate, *prefix) = (0, 0);
                }
            }
        };
        let finish = |semantics, scope| {
            move |s: &mut Sequences| {
                s.finish.iter_mut().for_each(|step| {
                    step.semantics = semantics;
                    step.scope = scope;
                });
            }
        };
        use Part::{Block, Composition, Counters, HandOver};
        let faults: Vec<(&str, Part, Sequences)> = vec![
            ("release dropped", Composition, published(&split, with_semantics(Semantics::Relaxed))),
            ("acquire dropped", Composition, read(&split, with_semantics(Semantics::Relaxed))),
            ("weak tags", Composition, both(&split, with_semantics(Semantics::Weak))),
            ("release of the block", Composition, published(&split, with_scope(Scope::Cta))),
            ("acquire of the cluster", Composition, read(&split, with_scope(Scope::Cluster))),
            ("tag first", Composition, published(&split, |steps| steps.reverse())),
            ("value first", Composition, read(&split, |steps| steps.reverse())),
            ("writer's fence dropped", Composition, published(&fenced, without_fence)),
            ("reader's fence dropped", Composition, read(&fenced, without_fence)),
            ("fence of the block", Composition, published(&fenced, fence_of_block)),
            (
                "one publish alone weakened",
                Composition,
                edited(&split, |s| with_semantics(Semantics::Relaxed)(&mut s.publishes[1].steps)),
            ),
            ("one slot for both", Composition, both(&split, one_slot)),
            ("word stored in halves, value first", Composition, published(&packed, in_halves([1, 0]))),
            ("word stored in halves, tag first", Composition, published(&packed, in_halves([0, 1]))),
            ("word loaded in halves", Composition, read(&packed, in_halves([1, 0]))),
            ("vector", Composition, both(&packed, as_vector)),
            ("vector of 128 bits", Composition, both(&wide, as_vector)),
            ("weak words", Composition, both(&packed, with_semantics(Semantics::Weak))),
            ("word of the block", Composition, published(&packed, with_scope(Scope::Cta))),
            ("relaxed count", HandOver, edited(&packed, finish(Semantics::Relaxed, Scope::Gpu))),
            ("count of release alone", HandOver, edited(&split, finish(Semantics::Release, Scope::Gpu))),
            ("count of acquire alone", HandOver, edited(&split, finish(Semantics::Acquire, Scope::Gpu))),
            ("count of the block", Counters, edited(&packed, finish(Semantics::AcquireRelease, Scope::Cta))),
            (
                "no barrier before the count",
                HandOver,
                edited(&split, |s| s.hand_over.retain(|step| step.role == Role::Shared)),
            ),
            (
                "no barrier before the count",
                Block,
                edited(&wide, |s| s.hand_over.retain(|step| step.role == Role::Shared)),
            ),
            (
                "no barrier behind the ticket",
                Block,
                edited(&wide, |s| s.start.retain(|step| !matches!(step.kind, StepKind::Barrier(_)))),
            ),
            (
                "ticket of the block",
                Counters,
                edited(&packed, |s| {
                    s.start
                        .iter_mut()
                        .filter(|step| step.kind == StepKind::Update)
                        .for_each(|step| step.scope = Scope::Cta);
                }),
            ),
            (
                "ticket not reset",
                Counters,
                edited(&packed, |s| s.resets.retain(|step| step.role != Role::Counter(Counter::Ticket))),
            ),
            (
                "count not reset",
                Counters,
                edited(&packed, |s| s.resets.retain(|step| step.role != Role::Counter(Counter::Finished))),
            ),
            ("tags not cleared", HandOver, edited(&packed, |s| s.invalidate.clear())),
        ];
        for (name, part, sequences) in &faults {
            for tiles in [3, TILES] {
                let report = protocol::check_part(sequences, tiles, *part).unwrap_or_else(|error| panic!("{error}"));
                let violation = report.violation.unwrap_or_else(|| panic!("{name}: nothing found with {tiles} tiles"));
                println!("{name}: {}", violation.what);
            }
        }
    }

    #[test]
    fn no_strengthening_by_hand_is_reported() {
        let Some(compiler) = compiler("no_strengthening_by_hand_is_reported") else { return };
        let split = sequences(&compiler, Kernel::Lookback, Descriptor::Split, "");
        let packed = sequences(&compiler, Kernel::Lookback, Descriptor::Packed64, "");
        let harmless = [
            ("fences", fenced(&split, Scope::Gpu)),
            ("fences of the system", fenced(&split, Scope::System)),
            ("system scope", both(&split, with_scope(Scope::System))),
            ("a fence too many", published(&packed, with_fence(Scope::Gpu, false))),
            ("releases that nobody needs", published(&packed, with_semantics(Semantics::Release))),
            ("no aggregates", edited(&split, |s| s.publishes.retain(|publish| publish.status == Status::Prefix))),
            ("two barriers", edited(&packed, |s| s.hand_over.extend(s.hand_over.clone()))),
            (
                "a stronger ticket",
                edited(&packed, |s| {
                    s.start.iter_mut().filter(|step| step.kind == StepKind::Update).for_each(|step| {
                        step.semantics = Semantics::AcquireRelease;
                    });
                }),
            ),
            (
                "fence.sc around a relaxed count",
                edited(&packed, |s| {
                    s.finish[0].semantics = Semantics::Relaxed;
                    s.finish.insert(0, fence(true, Scope::Gpu));
                    s.finish.push(fence(true, Scope::Gpu));
                }),
            ),
        ];
        for (name, sequences) in &harmless {
            let report = check(sequences, 3);
            assert!(report.violation().is_none(), "{name}: {:?}", report.violation());
        }
    }

    #[test]
    fn a_violation_comes_with_its_execution() {
        let Some(compiler) = compiler("a_violation_comes_with_its_execution") else { return };
        let report = check(&sequences(&compiler, Kernel::Lookback, Descriptor::Split, "relaxed_tag_store"), 3);
        let (part, violation) = report.violation().expect("a violation");
        assert_eq!(part, Part::Composition);
        let text = violation.to_string();
        println!("{text}");
        for expected in
            ["the prefix of tile 1", "tile 0 lane 0: publish prefix: st.relaxed", "tile 1 lane 0: read: ld", "poison"]
        {
            assert!(text.contains(expected), "'{expected}' is missing in\n{text}");
        }
    }

    #[cfg(feature = "cli")]
    mod with_loom {
        use super::*;
        use lookback::lab::axiomatic::loom_model;
        use std::time::Duration;

        const LIMIT: Duration = Duration::from_secs(120);

        #[test]
        fn every_protocol_is_right_on_loom() {
            let Some(compiler) = compiler("every_protocol_is_right_on_loom") else { return };
            for (kernel, _) in KERNELS {
                for descriptor in DESCRIPTORS {
                    let found = sequences(&compiler, kernel, descriptor, "");
                    let largest = if kernel == Kernel::Chained { 4 } else { 3 };
                    for tiles in 2..=largest {
                        let report = loom_model::check(&found, tiles, LIMIT).unwrap_or_else(|error| panic!("{error}"));
                        println!("{} {descriptor}: {report:?}", kernel.name());
                        assert_eq!(report.violation, None);
                        assert!(report.complete && report.finished > 0, "{report:?}");
                    }
                }
            }
        }

        #[test]
        fn a_value_of_two_words_is_all_there_or_waited_for_on_loom() {
            let Some(compiler) = compiler("a_value_of_two_words_is_all_there_or_waited_for_on_loom") else { return };
            for (kernel, _) in KERNELS {
                let check = |mutant| {
                    let found = of_two_words(&compiler, kernel, TileOrder::Ticket, mutant).expect("it is understood");
                    let report = loom_model::check(&found, 3, LIMIT).unwrap_or_else(|error| panic!("{error}"));
                    println!("{} of two words {mutant}: {report:?}", kernel.name());
                    report
                };
                let report = check("");
                assert_eq!(report.violation, None);
                assert!(report.complete && report.finished > 0, "{report:?}");
                for mutant in OF_TWO_WORDS {
                    assert!(check(mutant).violation.is_some(), "{mutant} in {}", kernel.name());
                }
            }
        }

        #[test]
        fn every_ordering_mutant_of_the_kernels_is_found_on_loom() {
            let Some(compiler) = compiler("every_ordering_mutant_of_the_kernels_is_found_on_loom") else { return };
            let all = Mutant::all().expect("mutants").iter();
            let is_asked = |mutant: &Mutant| mutant.kind == Kind::Ordering || mutant.is_harmless();
            let is_of_plain = |mutant: &&Mutant| mutant.rule.is_none() && mutant.when.problems.is_empty();
            for mutant in all.filter(is_of_plain).filter(|mutant| is_asked(mutant)) {
                for (kernel, descriptor) in places(mutant) {
                    let found = sequences(&compiler, kernel, descriptor, &mutant.name);
                    // It has no tickets.
                    let plain = sequences(&compiler, kernel, descriptor, "");
                    let of_loom = |s: &Sequences| (s.publishes.clone(), s.reads.clone(), s.finish.clone());
                    let is_fault = mutant.kind == Kind::Ordering && of_loom(&found) != of_loom(&plain);
                    let report = loom_model::check(&found, 3, LIMIT).unwrap_or_else(|error| panic!("{error}"));
                    println!("{mutant} in {} {descriptor}: {report:?}", kernel.name());
                    assert_eq!(report.violation.is_some(), is_fault, "{mutant} {report:?}");
                }
            }
        }

        #[test]
        fn more_tiles_than_loom_holds_are_refused() {
            let Some(compiler) = compiler("more_tiles_than_loom_holds_are_refused") else { return };
            let found = sequences(&compiler, Kernel::Chained, Descriptor::Split, "");
            assert!(loom_model::check(&found, 5, LIMIT).is_err());
            assert!(loom_model::check(&found, 0, LIMIT).is_err());
        }
    }
}
