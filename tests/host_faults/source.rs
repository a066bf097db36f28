//! A Rust file as text to be changed: its functions, and where a text stands in one of them by its tokens, so that
//! neither layout nor comments matter. (Those of the kernels are C++, which `src/kernels/weave.rs` reads.)

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::ops::Range;
use syn::visit::{self, Visit};

/// A word, a literal or a sign, and the bytes where it stands.
type Token = (String, Range<usize>);

/// A function with its path in the file: `Workspace::reserve`, `tests::a_test`.
pub struct Function {
    pub path: String,
    pub is_test: bool,
    /// The bytes between its braces.
    body: Range<usize>,
}

/// A file, its tokens and its functions.
pub struct Source {
    text: String,
    tokens: Vec<Token>,
    pub functions: Vec<Function>,
}

impl Source {
    /// # Errors
    /// When the text is no Rust.
    pub fn new(text: String) -> Result<Self, String> {
        let file = syn::parse_file(&text).map_err(|error| error.to_string())?;
        let mut found = Functions::default();
        found.visit_file(&file);
        Ok(Self { tokens: tokens(&text)?, text, functions: found.functions })
    }

    /// The bytes of what is sought in the function, which stands there once.
    ///
    /// # Errors
    /// When there is no such function, or the text does not stand there, or stands there more than once.
    pub fn find(&self, function: &str, sought: &str) -> Result<Range<usize>, String> {
        let pattern = tokens(sought)?;
        if pattern.is_empty() {
            return Err("it looks for nothing".to_owned());
        }
        let bodies: Vec<_> = self.functions.iter().filter(|known| known.path == function).collect();
        let [Function { body, .. }] = bodies[..] else {
            return Err(format!("there are {} functions {function}", bodies.len()));
        };
        let is_inside = |(_, at): &&Token| body.start <= at.start && at.end <= body.end;
        let here: Vec<&Token> = self.tokens.iter().filter(is_inside).collect();
        let fits = |window: &&[&Token]| window.iter().zip(&pattern).all(|(is, wanted)| is.0 == wanted.0);
        let found: Vec<_> = here.windows(pattern.len()).filter(fits).collect();
        match found[..] {
            [[first, ..]] if pattern.len() == 1 => Ok(first.1.clone()),
            [[first, .., last]] => Ok(first.1.start..last.1.end),
            [] => Err(format!("`{sought}` does not stand in {function}")),
            _ => Err(format!("`{sought}` stands in {function} {} times; take in more of the text", found.len())),
        }
    }

    /// The file with other texts in these places.
    ///
    /// # Errors
    /// When two places cut across each other, nothing is changed by a text, or what comes out is no Rust.
    pub fn with(&self, mut edits: Vec<(Range<usize>, &str)>) -> Result<String, String> {
        edits.sort_by_key(|(place, _)| place.start);
        let (mut woven, mut at) = (String::new(), 0);
        for (place, text) in edits {
            if place.start < at {
                return Err("two edits cut across each other".to_owned());
            }
            woven.push_str(&self.text[at..place.start]);
            woven.push_str(text.trim());
            at = place.end;
        }
        woven.push_str(&self.text[at..]);
        syn::parse_file(&woven).map_err(|error| format!("what comes out is no Rust: {error}"))?;
        if tokens(&woven)?.iter().map(|(word, _)| word).eq(self.tokens.iter().map(|(word, _)| word)) {
            return Err("it changes nothing".to_owned());
        }
        Ok(woven)
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    fn collect(stream: TokenStream, found: &mut Vec<Token>) {
        for tree in stream {
            match tree {
                TokenTree::Group(group) => {
                    let signs = match group.delimiter() {
                        Delimiter::Parenthesis => ["(", ")"],
                        Delimiter::Brace => ["{", "}"],
                        Delimiter::Bracket => ["[", "]"],
                        Delimiter::None => ["", ""],
                    };
                    found.push((signs[0].to_owned(), group.span_open().byte_range()));
                    collect(group.stream(), found);
                    found.push((signs[1].to_owned(), group.span_close().byte_range()));
                }
                tree => found.push((tree.to_string(), tree.span().byte_range())),
            }
        }
    }
    let stream = text.parse::<TokenStream>().map_err(|error| format!("`{text}`: {error}"))?;
    let mut found = Vec::new();
    collect(stream, &mut found);
    Ok(found)
}

#[derive(Default)]
struct Functions {
    /// Modules and types that are open.
    path: Vec<String>,
    functions: Vec<Function>,
}

impl Functions {
    fn inside(&mut self, name: String, look: impl FnOnce(&mut Self)) {
        self.path.push(name);
        look(self);
        self.path.pop();
    }

    fn function(&mut self, attributes: &[syn::Attribute], name: &syn::Ident, block: &syn::Block) {
        let is_test = attributes.iter().any(|attribute| attribute.path().is_ident("test"));
        let path = self.path.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>().join("::");
        let braces = block.brace_token.span;
        let body = braces.open().byte_range().end..braces.close().byte_range().start;
        self.functions.push(Function { path, is_test, body });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.inside(item.ident.to_string(), |inside| visit::visit_item_mod(inside, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // `Place` of `Place<'_>` and of `impl Drop for super::Place`.
        let name = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.inside(name.unwrap_or_default(), |inside| visit::visit_item_impl(inside, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig.ident, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig.ident, &item.block);
    }
}
