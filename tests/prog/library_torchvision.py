"""torchvision: a classifier on made-up pictures, two loader workers, mixed precision, accuracy."""

import time

import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision.transforms import v2


def loaders():
    transform = v2.Compose(
        [
            v2.ToImage(),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(mean=[0.5] * 3, std=[0.25] * 3),
        ]
    )
    train = torchvision.datasets.FakeData(64, (3, 32, 32), 10, transform=transform)
    test = torchvision.datasets.FakeData(24, (3, 32, 32), 10, transform=transform, random_offset=99)
    options = {"batch_size": 8, "num_workers": 2, "pin_memory": True, "persistent_workers": True}
    return DataLoader(train, shuffle=True, **options), DataLoader(test, **options)


class Average:
    """A meter as in the reference scripts."""

    def __init__(self):
        self.total = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    @property
    def value(self):
        return self.total / max(self.count, 1)


def accuracy(output, target, topk=(1, 3)):
    with torch.no_grad():
        _, predicted = output.topk(max(topk), 1, True, True)
        correct = predicted.t().eq(target[None])
        return [correct[:k].flatten().sum() * (100.0 / len(target)) for k in topk]


def train_one_epoch(model, loader, criterion, optimizer, scaler, epoch):
    model.train()
    losses, top1 = Average(), Average()
    for step, (images, targets) in enumerate(loader):
        images = images.to("cuda", non_blocking=True)
        targets = targets.to("cuda", non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(images)
            loss = criterion(output, targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        acc1, _ = accuracy(output, targets)
        losses.update(loss.item(), len(images))
        top1.update(acc1.item(), len(images))
        if step % 4 == 0:
            print(f"epoch {epoch} step {step} loss {losses.value:.3f} {loss:.3f}")


def evaluate(model, loader):
    model.eval()
    correct = seen = 0
    with torch.inference_mode():
        for images, targets in loader:
            output = model(images.to("cuda"))
            predicted = output.argmax(1).cpu()
            correct += (predicted == targets).sum().item()
            seen += len(targets)
    return correct, seen


def main():
    torch.manual_seed(0)
    train, test = loaders()
    model = torchvision.models.squeezenet1_1(num_classes=10).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(3):
        train_one_epoch(model, train, torch.nn.CrossEntropyLoss(), optimizer, scaler, epoch)
        scheduler.step()
        _, seen = evaluate(model, test)
        print(f"epoch {epoch}: {seen} seen")
    torch.save(model.state_dict(), "model.pt")
    time.sleep(0.05)


if __name__ == "__main__":
    main()
