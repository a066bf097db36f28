//! Drawing with plotters as SVG, and the classes by which one file serves light and dark pages.

use super::error::ReportError;
use super::html::{escaped, printable};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A drawn plot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// File name without its ending.
    pub name: String,
    /// What it shows, for the page.
    pub title: String,
    /// What to know when reading it.
    pub caption: String,
    /// The drawing.
    pub svg: String,
    /// The same for a narrow page, if it has a layout of its own there.
    pub narrow_svg: Option<String>,
    /// Whether its title is what came out, which a page begins with.
    pub is_answer: bool,
}

/// A picture in its layouts.
pub(super) struct Drawing {
    pub(super) wide: String,
    pub(super) narrow: Option<String>,
}

impl Plot {
    /// Its file in the report's folder.
    pub fn file_name(&self) -> String {
        format!("{}.svg", self.name)
    }

    /// The plot of this name as `draw` draws it.
    pub(super) fn drawn(
        name: String,
        title: String,
        caption: String,
        draw: impl FnOnce() -> Result<Drawing, Refusal>,
    ) -> Result<Self, ReportError> {
        match draw() {
            Ok(Drawing { wide, narrow }) => {
                Ok(Self { name, title, caption, svg: wide, narrow_svg: narrow, is_answer: false })
            }
            Err(refusal) => Err(ReportError::Drawing { plot: name, reason: refusal.to_string() }),
        }
    }

    /// The plot in a page, with both layouts; `source` continues its caption and is HTML.
    pub(super) fn figure(&self, source: &str) -> String {
        let caption = escaped(&self.caption);
        let pictures = match &self.narrow_svg {
            Some(narrow) => format!(
                "<div class=\"wide\">\n{}\n</div>\n<div class=\"narrow\">\n{}\n</div>",
                self.svg.trim_end(),
                narrow.trim_end()
            ),
            // What the picture says at its top is cut there.
            None => format!("<p class=\"narrow\">{}</p>\n{}", escaped(&self.title), scrolled(&self.svg)),
        };
        let name = escaped(&self.name);
        format!("<figure id=\"{name}\">\n{pictures}\n<figcaption>{caption} {source}</figcaption>\n</figure>\n")
    }
}

/// A picture in a page that has only its wide layout: what does not fit is scrolled to.
pub(super) fn scrolled(svg: &str) -> String {
    format!("<div class=\"scroll\">\n{}\n</div>", svg.trim_end())
}

/// What the drawing library says when it refuses.
pub(super) type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// What is drawn on.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

// `finish_svg` gives these colours classes, so nothing else may have them.
pub(super) const INK: RGBColor = RGBColor(0x24, 0x29, 0x2f);
pub(super) const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
pub(super) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xfe);
/// What the paper is on a dark page.
pub(super) const DARK_PAPER: RGBColor = RGBColor(0x0d, 0x11, 0x17);
// Text on a coloured field, apart from `PAPER` and `INK`, because a field keeps its colour on a dark page.
pub(super) const ON_DARK: RGBColor = RGBColor(0xff, 0xff, 0xff);
pub(super) const ON_LIGHT: RGBColor = RGBColor(0x10, 0x10, 0x10);

/// Text that stands to the right of its point, left of it or around it, and in the middle of its height.
pub(super) fn text(size: i32, color: RGBColor, horizontal: HPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&color).pos(Pos::new(horizontal, VPos::Center))
}

/// Text below and to the right of its point.
pub(super) fn plain_text(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Paper with a title on it.
pub(super) fn title_of(root: &Area<'_>, title: &str) -> Result<(), Refusal> {
    root.fill(&PAPER)?;
    root.draw(&Text::new(title.to_owned(), (16, 14), plain_text(17)))?;
    Ok(())
}

/// A drawing as plotters writes it, and what `draw` gives back.
fn raw<T>(
    size: (u32, u32),
    draw: impl for<'a> FnOnce(&Area<'a>) -> Result<T, Refusal>,
) -> Result<(String, T), Refusal> {
    let mut svg = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = draw(&root)?;
        root.present()?;
        drawn
    };
    Ok((svg, drawn))
}

/// A whole drawing; `title` is for screen readers.
pub(super) fn drawing(
    size: (u32, u32),
    title: &str,
    draw: impl for<'a> FnOnce(&Area<'a>) -> Result<(), Refusal>,
) -> Result<String, Refusal> {
    Ok(finish_svg(&raw(size, draw)?.0, title))
}

/// A whole drawing below whose end `draw` adds elements that the drawing library has not.
pub(super) fn drawing_with(
    size: (u32, u32),
    title: &str,
    draw: impl for<'a> FnOnce(&Area<'a>) -> Result<String, Refusal>,
) -> Result<String, Refusal> {
    let (svg, elements) = raw(size, draw)?;
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    Ok(finish_svg(&format!("{}{elements}</svg>\n", &svg[..end]), title))
}

/// #24292F
pub(super) fn hexadecimal((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// What stands in the style of every picture, by which one of this program is told from others.
pub(super) const MARK: &str = ".ink-fill{fill:";

/// Colours of the dark page; the attributes in the drawing are those of the light one. A pen brings its own.
fn style() -> String {
    let RGBColor(red, green, blue) = DARK_PAPER;
    let paper = hexadecimal((red, green, blue));
    format!(
        "<style>\
         text{{font-family:system-ui,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif}}\
         @media(prefers-color-scheme:dark){{\
         {MARK}#d7dde3}}.ink-line{{stroke:#8b949e}}.grid-line{{stroke:#30363d}}.paper-fill{{fill:{paper}}}\
         .pen{{color:var(--dark)}}}}\
         </style>"
    )
}

/// Adds a title for screen readers, the style, and classes where colours follow the page. Leaves out what an attribute
/// is by itself.
fn finish_svg(svg: &str, title: &str) -> String {
    // The drawing library takes text as it is.
    let mut svg = printable(svg);
    for default in [" opacity=\"1\"", " stroke-width=\"1\"", " font-family=\"sans-serif\"", " stroke=\"none\""] {
        svg = svg.replace(default, "");
    }
    for (name, color, class) in [
        ("fill", INK, "ink-fill"),
        ("stroke", INK, "ink-line"),
        ("stroke", GRID, "grid-line"),
        ("fill", PAPER, "paper-fill"),
    ] {
        let plain = format!("{name}=\"{}\"", hexadecimal((color.0, color.1, color.2)));
        svg = svg.replace(&plain, &format!("{plain} class=\"{class}\""));
    }
    let head_end = svg.find('>').map_or(0, |end| end + 1);
    let (head, rest) = svg.split_at(head_end);
    let head = head.replacen("<svg ", "<svg role=\"img\" ", 1);
    format!("{head}\n<title>{}</title>{}{rest}", escaped(title), style())
}

/// The contrast of two colours, from 1 to 21 (WCAG 2).
#[cfg(test)]
pub(super) fn contrast(one: (u8, u8, u8), other: (u8, u8, u8)) -> f64 {
    let linear = |part: u8| match f64::from(part) / 255.0 {
        part if part <= 0.04045 => part / 12.92,
        part => ((part + 0.055) / 1.055).powf(2.4),
    };
    let luminance =
        |(red, green, blue): (u8, u8, u8)| 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_holds_its_mark_and_no_control_character() {
        let title = "a\u{1}b";
        let svg = drawing((100, 100), title, |root| title_of(root, title)).unwrap();
        assert!(svg.contains(MARK) && svg.contains("a\u{fffd}b") && !svg.contains('\u{1}'), "{svg}");
        assert_eq!(svg.matches('\u{fffd}').count(), 2, "{svg}");
    }
}
