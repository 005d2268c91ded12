{ SPDX-License-Identifier: MIT }
{ shapes.pas - calls of all kinds that FreePascal makes: direct, virtual, by pointer, nested, of the library; it
  says how often fib() was called. }
{$mode objfpc}
program shapes;
uses cthreads, sysutils, classes;

type
  TShape = class
    function Area: Integer; virtual; abstract;
  end;
  TSquare = class(TShape)
    side: Integer;
    constructor Create(x: Integer);
    function Area: Integer; override;
  end;
  TCompare = function(a, b: Integer): Boolean;

var
  called: Integer = 0;

constructor TSquare.Create(x: Integer);
begin
  side := x;
end;

function TSquare.Area: Integer;
begin
  Area := side * side;
end;

function fib(n: Integer): Integer;
begin
  inc(called);
  if n < 2 then fib := n else fib := fib(n - 1) + fib(n - 2);
end;

function choose(n: Integer): Integer;
begin
  case n of
    0: choose := 3; 1: choose := 7; 2: choose := 1; 3: choose := 9; 4: choose := 11;
    5: choose := 2; 6: choose := 22; 7: choose := 5; 10: choose := 6; 20: choose := 8;
  else
    choose := -1;
  end;
end;

function less(a, b: Integer): Boolean;
begin
  less := a < b;
end;

function smallest(compare: TCompare): Integer;
var
  i: Integer;
begin
  smallest := 100;
  for i := 0 to 20 do
    if compare(choose(i), smallest) then smallest := choose(i);
end;

var
  i: Integer;
  shape: TShape;
  list: TStringList;
begin
  shape := TSquare.Create(5);
  list := TStringList.Create;
  for i := 0 to 10 do list.Add(IntToStr(100 - i));
  list.Sort;
  writeln(fib(20), ' ', smallest(@less), ' ', shape.Area, ' ', list.CommaText);
  try
    raise Exception.Create('raised');
  except
    on e: Exception do writeln(e.Message);
  end;
  list.Free;
  shape.Free;
  writeln('fib ', called);
end.
