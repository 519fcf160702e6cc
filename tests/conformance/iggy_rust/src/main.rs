//! Plays one scenario of the Rust client of September 2023 against a server: scenarios ADDRESS SCENARIO STREAM.
//! It ends with 0 if all was as it should be.

mod background;
mod groups;
mod messages;
mod offsets;
mod scene;
mod sharing;
mod streams;
mod system;
mod topics;
mod updates;

use scene::Scene;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, scenario, stream] = arguments.as_slice() else {
        panic!("scenarios ADDRESS SCENARIO STREAM");
    };
    let scene = Scene::new(address, stream.parse().unwrap());
    match scenario.as_str() {
        "system" => system::play(&scene).await,
        "streams" => streams::play(&scene).await,
        "topics" => topics::play(&scene).await,
        "messages" => messages::play(&scene).await,
        "offsets" => offsets::play(&scene).await,
        "groups" => groups::play(&scene).await,
        "background" => background::play(&scene).await,
        "write" => sharing::write(&scene).await,
        "read" => sharing::read(&scene).await,
        "updates" => updates::play(&scene).await,
        _ => panic!("there is no scenario {scenario}"),
    }
}
