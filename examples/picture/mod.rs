//! What the examples that draw have in common: where pictures go, and a drawing in SVG that a light page and a dark one can show.

use crate::check::Outcome;
use std::error::Error;
use std::fmt::{Display, Write as _};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The folder for pictures, if one is named, and the file to read, which has a default.
#[allow(dead_code, reason = "not every example reads a file")]
pub fn arguments(default: &str) -> Result<(Option<PathBuf>, PathBuf), Box<dyn Error>> {
    let mut arguments = paths(2, &format!(", and behind it a file in place of {default}"))?;
    Ok((arguments.next(), arguments.next().unwrap_or_else(|| default.into())))
}

/// The folder for pictures, if one is named, of an example that reads nothing.
#[allow(dead_code, reason = "most examples read a file")]
pub fn folder() -> Result<Option<PathBuf>, Box<dyn Error>> {
    Ok(paths(1, "")?.next())
}

/// The program's arguments, of which there are so many at most.
fn paths(most: usize, others: &str) -> Result<std::vec::IntoIter<PathBuf>, String> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let is_option = |argument: &PathBuf| argument.as_os_str().as_encoded_bytes().starts_with(b"-");
    if arguments.len() > most || arguments.iter().any(is_option) {
        return Err(format!("name a folder for pictures, or none{others}"));
    }
    Ok(arguments.into_iter())
}

/// Keeps a picture in the folder, if there is one. The same one may be there; another one is not overwritten.
pub fn keep(folder: Option<&Path>, name: &str, picture: &[u8]) -> Outcome {
    let Some(folder) = folder else { return Ok(()) };
    let path = folder.join(name);
    let shown = path.display();
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    match File::create_new(&path) {
        Ok(mut file) => file.write_all(picture).map_err(failed)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if std::fs::read(&path).map_err(failed)? != picture {
                return Err(format!("{shown} is another picture: remove it, or name another folder").into());
            }
        }
        Err(error) => return Err(failed(error).into()),
    }
    println!("{shown}");
    Ok(())
}

/// Colours of a light page and of a dark one.
const STYLE: &str = "text{font:12px system-ui,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;fill:#24292f}\
    .title{font-size:15px}.paper{fill:#fffffe}.grid{stroke:#d8dee4}.line{stroke:#d55e00;stroke-width:2;fill:none}\
    .area{fill:#0067ab}.line-text{fill:#d55e00}\
    @media(prefers-color-scheme:dark){text{fill:#d7dde3}.paper{fill:#0d1117}.grid{stroke:#30363d}.line{stroke:#e8702a}\
    .area{fill:#3b97dd}.line-text{fill:#e8702a}}";

/// A drawing that grows.
pub struct Drawing(String);

impl Drawing {
    /// Paper of so many pixels with a title, which says what is seen.
    pub fn new(width: u32, height: u32, title: &str) -> Self {
        let title = escaped(title);
        let mut drawing = Self(format!(
            "<svg role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\">\n<title>{title}</title><style>{STYLE}</style>\n"
        ));
        drawing.add(format_args!("<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>"));
        drawing.add(format_args!("<text class=\"title\" x=\"16\" y=\"26\">{title}</text>"));
        drawing
    }

    fn add(&mut self, element: impl Display) {
        writeln!(self.0, "{element}").expect("a string takes all that is written to it");
    }

    /// Text whose `anchor` (start, middle, end) is at the place.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// A line of the grid.
    pub fn grid(&mut self, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
        self.add(format_args!("<line class=\"grid\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{to_x:.1}\" y2=\"{to_y:.1}\"/>"));
    }

    /// A line through places.
    pub fn line(&mut self, places: impl Iterator<Item = (f64, f64)>) {
        let places: Vec<String> = places.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.add(format_args!("<polyline class=\"line\" points=\"{}\"/>", places.join(" ")));
    }

    /// Rectangles, each by its left upper corner, width and height.
    #[allow(dead_code, reason = "not every example has rectangles")]
    pub fn rectangles(&mut self, rectangles: impl Iterator<Item = [f64; 4]>) {
        let path: String = rectangles
            .map(|[x, y, width, height]| format!("M{x:.1} {y:.1}h{width:.2}v{height:.1}h-{width:.2}z"))
            .collect();
        self.add(format_args!("<path class=\"area\" d=\"{path}\"/>"));
    }

    /// The same of whole pixels, in a colour so far from that of the paper: 0 is the paper's, 1 the whole one.
    #[allow(dead_code, reason = "not every example has shades")]
    pub fn shaded(&mut self, class: &str, opacity: f64, rectangles: impl Iterator<Item = [u32; 4]>) {
        let path: String =
            rectangles.map(|[x, y, width, height]| format!("M{x} {y}h{width}v{height}h-{width}z")).collect();
        self.add(format_args!("<path class=\"{class}\" fill-opacity=\"{opacity:.3}\" d=\"{path}\"/>"));
    }

    /// The file.
    pub fn finish(mut self) -> Vec<u8> {
        self.add("</svg>");
        self.0.into_bytes()
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
