"""transformers: a small GPT-2, fine-tuned by Trainer with evaluation and checkpoints, then generate()."""

import sys
import time

import torch
from torch.utils.data import Dataset
from transformers import (
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Copies(Dataset):
    def __init__(self, count, length=16, vocabulary=64):
        generator = torch.Generator().manual_seed(count)
        self.rows = torch.randint(1, vocabulary, (count, length), generator=generator)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"input_ids": row, "labels": row.clone(), "attention_mask": torch.ones_like(row)}


class Watch(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **more):
        names = sorted(logs)
        print(f"step {state.global_step}: {', '.join(names)}")

    def on_step_end(self, args, state, control, model=None, **more):
        # A user's hook, called from deep inside the library.
        norms = model.transformer.h[0].ln_1
        if any(torch.isnan(p).any() for p in norms.parameters()):
            print("nan")


def finetune(model, folder):
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=64,
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        logging_steps=8,
        eval_strategy="steps",
        eval_steps=16,
        save_steps=32,
        report_to=[],
        disable_tqdm=True,
        seed=3,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Copies(64),
        eval_dataset=Copies(12),
        callbacks=[Watch()],
    )
    trainer.pop_callback("PrinterCallback")
    trainer.train()
    return trainer.state.global_step


class Enough(Exception):
    pass


class Stream:
    """Where generate() puts each token. It ends the text: on the simulated device no condition ever holds."""

    def __init__(self, most):
        self.most = most
        self.tokens = []

    def put(self, tokens):
        self.tokens.append(tokens.shape)
        if len(self.tokens) == self.most:
            raise Enough

    def end(self):
        pass


def complete(model, prompts):
    settings = GenerationConfig(max_new_tokens=20, do_sample=False, pad_token_id=0, eos_token_id=63)
    counts = []
    for prompt in prompts:
        stream = Stream(most=7)
        try:
            model.generate(prompt.to("cuda"), generation_config=settings, streamer=stream)
        except Enough:
            counts.append(len(stream.tokens))
    return counts


def main():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(config)
    print(finetune(model, sys.argv[1] if len(sys.argv) > 1 else "checkpoints"), "steps")
    model.eval()
    print(complete(model, Copies(5, length=4).rows.split(1)), "tokens")
    time.sleep(0.05)


if __name__ == "__main__":
    main()
