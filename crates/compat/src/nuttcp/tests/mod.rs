mod argv;
mod dialogues;
mod lines;
mod transcripts;
mod wire;
