//! What a definition becomes in CUDA C++: the struct `Own` of a file in `cuda/problem`, compiled in front of a kernel's entry point.

use super::{Array, Binning, Combining, CudaType, Definition, Kind, Others, Selection, places_of};
use crate::element::ElementType;
use std::fmt::Write as _;

impl Array {
    /// What the kernels load.
    fn loaded_type(&self) -> String {
        let name = &self.element.name;
        if self.is_in_runs { format!("::lookback::in_run<{name}>") } else { name.clone() }
    }

    fn check_of_size(&self, title: &str) -> String {
        check_of_size(&self.element.name, self.element.bytes, title)
    }

    /// As parameters of the user's text, each behind a comma.
    fn parameters(&self, by: &str) -> String {
        let Self { name, element, is_in_runs } = self;
        let own = format!(", [[maybe_unused]] {} {by}{name}", element.name);
        if !is_in_runs {
            return own;
        }
        format!("{own}, [[maybe_unused]] bool {name}_begins, [[maybe_unused]] bool {name}_ends")
    }

    /// What is given for them, of an element that is called so.
    fn arguments(&self, item: &str) -> String {
        if !self.is_in_runs {
            return format!(", {item}");
        }
        ["own", "begins", "ends"].map(|part| format!(", {item}.{part}")).concat()
    }
}

impl Others {
    const fn cuda_name(self) -> &'static str {
        match self {
            Self::Dropped => "others_are_dropped",
            Self::Apart => "others_are_apart",
            Self::Behind => "others_are_behind",
        }
    }
}

fn parameters(arrays: &[Array], by: &str) -> String {
    arrays.iter().map(|array| array.parameters(by)).collect()
}

/// What is given for arrays, of their elements in a tuple of that name.
fn arguments(arrays: &[Array], tuple: &str) -> String {
    let item = |number| format!("{tuple}.{}first", "rest.".repeat(number));
    arrays.iter().enumerate().map(|(number, array)| array.arguments(&item(number))).collect()
}

fn elements(arrays: &[Array]) -> String {
    let names: Vec<_> = arrays.iter().map(Array::loaded_type).collect();
    format!("elements<{}>", names.join(", "))
}

const PARAMETERS: &str = "#include \"problem/parameters.cuh\"\n";

/// Where the user's text forgets to return something, this compiler would only warn.
const WITHOUT_RETURN: &str = "#ifdef __CUDACC__\n#pragma nv_diag_error 940\n#endif\n";

/// A type is as large as Rust knows it.
fn check_of_size(name: &str, bytes: usize, title: &str) -> String {
    format!("static_assert(sizeof({name}) == {bytes}, \"'{name}' of '{title}' has {bytes} bytes in Rust\");\n")
}

/// Text of the user's on lines of its own, from 1, so that the compiler's messages speak of his lines.
fn lines_of(what: &str, title: &str, text: &str) -> String {
    format!("\n#line 1 \"the {what} of '{title}'\"\n{text}\n#line 1 \"'{title}'\"\n")
}

/// The same as the body of a function. What its end lacks, a semicolon or a `return`, the compiler misses at the brace, which
/// is on the last of his lines therefore.
fn body_of(what: &str, title: &str, text: &str) -> String {
    let last = text.lines().count().max(1);
    let end = format!("#line {last} \"the {what} of '{title}'\"\n}}\n#line 1 \"'{title}'\"\n");
    format!("{{\n#line 1 \"the {what} of '{title}'\"\n{text}\n{end}")
}

impl Definition {
    /// All of it, with counts of the type `count`.
    pub(super) fn text(&self, count: ElementType, is_reversed: bool, is_total: bool) -> String {
        let title = self.name.replace(['"', '\\', '\n', '\r'], "'");
        let (file, own) = match &self.kind {
            Kind::Sorting(_) => return self.sorted_text(),
            Kind::Binning(binning) => return self.binned_text(binning, &title),
            Kind::Expansion => return self.expanded_text(&title),
            Kind::Scatter { place } => return self.scattered_text(place, &title),
            Kind::Selection(selection) => ("by_rank", self.ranked_text(selection, count)),
            Kind::Placed | Kind::Mixed => ("defined", self.placed_text(is_total)),
        };
        let state = if self.is_told_by_bits() { &CudaType::from(count) } else { &self.state };
        format!(
            "#include \"problem/{file}.cuh\"\n{PARAMETERS}{WITHOUT_RETURN}namespace own {{\n\
             using namespace lookback;\n{}using state_type = {};\n{}{}{}{own}}}  // namespace own\n",
            lines_of("declarations", &title, &self.declarations),
            state.name,
            self.operator_text(&title),
            self.checks_of_sizes(state, &title),
            self.user_functions(is_reversed, &title),
        )
    }

    /// Of a sort, which is the same whatever the bits of its arrays mean.
    fn sorted_text(&self) -> String {
        let word = |array: &Array| match array.element.bytes {
            16 => String::from("::lookback::word128"),
            bytes => format!("::lookback::u{}", 8 * bytes),
        };
        let words: Vec<_> = self.inputs.iter().map(word).collect();
        format!(
            "#include \"problem/sorted.cuh\"\nnamespace own {{\nstruct text {{\n  using inputs = \
             ::lookback::elements<{}>;\n}};\n}}  // namespace own\n",
            words.join(", ")
        )
    }

    /// Of a histogram.
    fn binned_text(&self, Binning { bin, histogram }: &Binning, title: &str) -> String {
        let (loaded, given) = (parameters(&self.inputs, ""), arguments(&self.inputs, "items"));
        let set = self.set_parameters();
        // Where values alone are asked about, the compiler refuses a text that has the place after all.
        let place = if self.is_binned_by_value() { "" } else { " i" };
        let function = format!("u32 user_bin([[maybe_unused]] u64{place}{loaded}{set}) {}", body_of("bin", title, bin));
        let own = format!(
            "  static constexpr u32 bins = {};\n  DEVICE static u32 bin(u64 place, inputs items) {{ return \
             user_text::user_bin(place{given}); }}\n",
            histogram.bins,
        );
        self.unscanned_text("binned", &[function], &own, title)
    }

    /// Of items that are given places.
    fn expanded_text(&self, title: &str) -> String {
        let own = "u64 place, u64 item, u64 rank";
        self.moved_text(own, ["i", "item", "rank"], &[], "", title)
    }

    /// Of elements that say where they go.
    fn scattered_text(&self, place: &str, title: &str) -> String {
        let (loaded, given) = (parameters(&self.inputs, ""), arguments(&self.inputs, "items"));
        let set = self.set_parameters();
        let function =
            format!("u64 user_place([[maybe_unused]] u64 i{loaded}{set}) {}", body_of("place", title, place));
        let own = format!(
            "  DEVICE static u64 place([[maybe_unused]] u64 index, inputs items) {{ return user_text::user_place(index{given}); }}\n"
        );
        self.moved_text("u64 place", ["i"], &[function], &own, title)
    }

    /// Of what is stored elsewhere than it stood: `told` are the numbers that the text has, under these names.
    fn moved_text<const COUNT: usize>(
        &self,
        told: &str,
        names: [&str; COUNT],
        functions: &[String],
        own: &str,
        title: &str,
    ) -> String {
        let numbers = names.map(|name| format!("[[maybe_unused]] u64 {name}")).join(", ");
        let (loaded, stored) = (parameters(&self.inputs, ""), parameters(&self.outputs, "&"));
        let (given, out) = (arguments(&self.inputs, "items"), arguments(&self.outputs, "result"));
        let body = body_of("storing", title, &self.store);
        let function = format!("void user_store({numbers}{loaded}{stored}{}) {body}", self.set_parameters());
        let passed = told.replace("u64 ", "");
        let own = format!(
            "{own}  using outputs = {};\n  DEVICE static outputs store({told}, [[maybe_unused]] inputs items) {{\n    outputs \
             result;\n    user_text::user_store({passed}{given}{out});\n    return result;\n  }}\n",
            elements(&self.outputs),
        );
        self.unscanned_text("moved", &[functions, &[function]].concat(), &own, title)
    }

    /// Of what is no scan: the user's functions, and what `Own` has beside the inputs.
    fn unscanned_text(&self, file: &str, functions: &[String], own: &str, title: &str) -> String {
        let sizes: String = self.named().map(|array| array.check_of_size(title)).collect();
        let functions: String = functions.iter().map(|function| format!("  DEVICE static {function}\n")).collect();
        format!(
            "#include \"problem/{file}.cuh\"\n{PARAMETERS}{WITHOUT_RETURN}namespace own {{\nusing namespace lookback;\n{}{sizes}struct \
             user_text {{\n{}{functions}}};\nstruct text {{\n  using inputs = {};\n{own}}};\n}}  // namespace own\n",
            lines_of("declarations", title, &self.declarations),
            self.types_of_parameters(),
            elements(&self.inputs),
        )
    }

    /// What the user's functions are given by themselves, behind what their callers give them.
    fn set_parameters(&self) -> String {
        let places = self.parameters.iter().zip(places_of(&self.parameters)).enumerate();
        let set = |(number, (Array { name, .. }, place)): (usize, (&Array, usize))| {
            let own = format!("type_of_parameter_{number}");
            format!(", [[maybe_unused]] const {own} {name} = ::lookback::parameter<{own}, {place}>()")
        };
        places.map(set).collect()
    }

    /// Their types under other names, which no parameter has.
    fn types_of_parameters(&self) -> String {
        let named = |(number, Array { element, .. }): (usize, &Array)| {
            format!("  using type_of_parameter_{number} = {};\n", element.name)
        };
        self.parameters.iter().enumerate().map(named).collect()
    }

    /// The operator.
    fn operator_text(&self, title: &str) -> String {
        match &self.combining {
            Combining::Table(operator) => format!("using combining = {};\n", operator.cuda_type()),
            Combining::Count => String::from("using combining = ::lookback::operators::sum<state_type>;\n"),
            Combining::Length => String::from("using combining = ::lookback::last_and_count<state_type>;\n"),
            Combining::Text { identity, combine, is_commutative } => format!(
                "struct combining {{\n  using value_type = state_type;\n  static constexpr bool is_commutative = \
                 {is_commutative};\n  static constexpr bool is_exactly_undone = false;\n  DEVICE static state_type \
                 identity() {}\n  DEVICE static state_type combine(state_type left, state_type right) {}\n  \
                 DEVICE static state_type without(state_type total, state_type) {{ return total; }}\n}};\n",
                body_of("identity", title, &format!("return {identity}\n;")),
                body_of("combining", title, combine),
            ),
        }
    }

    /// Memory is laid out by the sizes that Rust knows.
    fn checks_of_sizes(&self, state: &CudaType, title: &str) -> String {
        let mut text = check_of_size("state_type", state.bytes, title);
        let _ = writeln!(
            text,
            "static_assert(alignof(state_type) <= 16, \"'state_type' of '{title}' is aligned to more than 16 bytes\");"
        );
        text.extend(self.named().map(|array| array.check_of_size(title)));
        text
    }

    /// The user's own functions, in a struct where no other names stand before those that he has declared.
    fn user_functions(&self, is_reversed: bool, title: &str) -> String {
        let (loaded, stored) = (parameters(&self.inputs, ""), parameters(&self.outputs, "&"));
        let set = self.set_parameters();
        let mut text = format!("struct user_text {{\n{}", self.types_of_parameters());
        let mut function = |head: &str, parameters: &str, what: &str, body: &str| {
            let body = body_of(what, title, body);
            let _ = writeln!(text, "  DEVICE static {head}([[maybe_unused]] u64 i{parameters}{set}) {body}");
        };
        if !self.is_told_by_bits() {
            function("state_type user_load", &loaded, "loading", &self.load);
        }
        let state = if matches!(self.combining, Combining::Count) { "" } else { ", [[maybe_unused]] state_type state" };
        let Kind::Selection(Selection { keep, begin, .. }) = &self.kind else {
            function("void user_store", &format!("{state}{stored}"), "storing", &self.store);
            return text + "};\n";
        };
        function("bool user_keep", &loaded, "keeping", keep);
        if let Some(begin) = begin {
            function("bool user_begin", &loaded, "beginning", begin);
        }
        function("void user_store", &format!("{state}{loaded}{stored}"), "storing", &self.store);
        let _ = writeln!(text, "  static constexpr bool is_reversed = {is_reversed};\n}};");
        text
    }

    /// The begin of `Own`.
    fn arrays_text(&self, is_total: bool) -> String {
        format!(
            "struct text {{\n  using inputs = {};\n  using outputs = {};\n  using beside_inputs = {};\n",
            elements(&self.inputs),
            elements(&self.outputs),
            elements(self.beside_inputs(is_total)),
        )
    }

    /// `Own` of what is stored at its place.
    fn placed_text(&self, is_total: bool) -> String {
        let (arrays, given, out) =
            (self.arrays_text(is_total), arguments(&self.inputs, "items"), arguments(&self.outputs, "result"));
        format!(
            "{arrays}  using operator_type = combining;\n  DEVICE static state_type load(u64 place, inputs items) {{ return \
             user_text::user_load(place{given}); }}\n  DEVICE static outputs store(u64 place, state_type state) {{\n    outputs \
             result;\n    user_text::user_store(place, state{out});\n    return result;\n  }}\n}};\n",
        )
    }

    /// `Own` of what is stored by rank.
    fn ranked_text(&self, selection: &Selection, count: ElementType) -> String {
        let Selection { begin, others, keeps_last, .. } = selection;
        let (arrays, given, out) =
            (self.arrays_text(false), arguments(&self.inputs, "items"), arguments(&self.outputs, "result"));
        let has_lengths = matches!(self.combining, Combining::Length);
        let may_store_any = self.declarations.is_empty() && is_harmless(&self.store);
        let is_kept = format!("user_text::user_keep(place{given})");
        let loaded_state = match begin {
            Some(_) => format!("{{user_text::user_load(place{given}), user_text::user_begin(place{given}) ? 1u : 0u}}"),
            None if has_lengths => format!("{{0, {is_kept} ? 1u : 0u}}"),
            None => format!("{is_kept} ? 1u : 0u"),
        };
        let operator = match begin {
            Some(_) => format!("::lookback::in_groups<combining, {}>", count.cuda_type()),
            None => String::from("combining"),
        };
        let own_state = if begin.is_some() || has_lengths { ", state.value" } else { "" };
        format!(
            "{arrays}  using operator_type = {operator};\n  using value_type = typename operator_type::value_type;\n  static \
             constexpr bool has_groups = {};\n  static constexpr bool keeps_last = {keeps_last};\n  static constexpr bool may_store_any = {may_store_any};\n  static constexpr bool has_lengths = {has_lengths};\n  static constexpr ::lookback::others others = ::lookback::{};\n  DEVICE static \
             value_type load(u64 place, inputs items) {{ return {loaded_state}; }}\n  DEVICE static bool keeps(u64 place, \
             inputs items) {{ return user_text::user_keep(place{given}); }}\n  DEVICE static outputs store(u64 place, [[maybe_unused]] value_type state, inputs items) \
             {{\n    outputs result;\n    user_text::user_store(place{own_state}{given}{out});\n    return result;\n  }}\n}};\n",
            begin.is_some(),
            others.cuda_name(),
        )
    }
}

/// Whether statements end and touch no memory, whatever the values of their names are: no loop, no array, no pointer, no call but of
/// conversions.
fn is_harmless(statements: &str) -> bool {
    let mut parts = statements.split("static_cast<");
    let first = parts.next().unwrap_or_default();
    // What is converted stands in parentheses behind the type.
    let others = parts.filter_map(|part| part.split_once('>')).map(|(_, rest)| rest);
    let is_harmless = |part: &str| {
        let is_plain =
            |character: char| character.is_ascii_alphanumeric() || " \n_;=?:+-&|^~<>!.,()".contains(character);
        let is_call =
            |(at, _)| part[..at].trim_end().ends_with(|before: char| before.is_ascii_alphanumeric() || before == '_');
        part.chars().all(is_plain) && !part.match_indices('(').any(is_call)
    };
    std::iter::once(first).chain(others).all(is_harmless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_might_hang_or_touch_memory_are_told_from_others() {
        for harmless in [
            "kept = x;",
            "value = x; length = static_cast<unsigned int>(state);",
            "place = is_reversed ? i : i + 1 - state; length = state;",
            "y = (x);",
        ] {
            assert!(is_harmless(harmless), "{harmless}");
        }
        for harmful in [
            "y = table[x];",
            "y = *pointer;",
            "while (x != 1) x = x - 1;",
            "y = f(x);",
            "y = f (x);",
            "y = static_cast<int>(f(x));",
            "for (;;) {}",
            "y = n / x;",
        ] {
            assert!(!is_harmless(harmful), "{harmful}");
        }
    }
}
