"""lightning: a module with logging, gradient clipping, validation and checkpoints, run by Trainer."""

import time

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))
        self.seen = 0.0

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self.body(x).squeeze(1), y)
        self.log("loss", loss, prog_bar=True)
        self.seen += float(loss.detach())
        if (
            torch.isnan(loss)
            and index > 0
        ):
            print("nan")
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        error = (self.body(x).squeeze(1) - y).abs()
        self.log("error", error.mean())
        # A mask: its size is read.
        self.log("worst", error[error > 1.0].sum())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)


class Epochs(Callback):
    def on_train_epoch_end(self, trainer, module):
        print("epoch", trainer.current_epoch, "steps", trainer.global_step)


def loader(count, shuffle=False):
    generator = torch.Generator().manual_seed(count)
    data = TensorDataset(torch.randn(count, 8, generator=generator), torch.randn(count, generator=generator))
    return DataLoader(data, batch_size=4, shuffle=shuffle)


def main():
    lightning.seed_everything(1, verbose=False)
    trainer = lightning.Trainer(
        accelerator="gpu",
        devices=1,
        max_epochs=10,
        gradient_clip_val=1.0,
        log_every_n_steps=4,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Epochs(), ModelCheckpoint(dirpath="checkpoints", every_n_epochs=5)],
    )
    trainer.fit(Regression(), loader(32, shuffle=True), loader(12))
    print(sorted(trainer.callback_metrics))
    time.sleep(0.05)


if __name__ == "__main__":
    main()
