# Network file server: programs are started, files are rewritten and extended, at a rate.
set $dir=/tmp
set $eventrate=10
set $meandirwidth=20
set $nthreads=1
set $nfiles=100000
set $runtime=60
eventgen rate=$eventrate

set $wrtiosize=randvar(type=tabular,min=1k,round=1k,randtable=
{{50,9k,15k},{14,17k,23k},{14,33k,39k},{12,65k,71k},{10,129k,135k}})
set $rdiosize=randvar(type=tabular,min=8k,round=1k,randtable=
{{85,8k,8k},{8,17k,23k},{4,33k,39k},{2,65k,71k},{1,129k,135k}})
set $filesize=randvar(type=tabular,min=1k,round=1k,randtable=
{{33,1k,1k},{21,1k,3k},{13,3k,5k},{10,5k,11k},{8,11k,21k},{5,21k,43k},{4,43k,85k},{3,85k,171k},
{2,171k,341k},{1,341k,1707k}})
set $fileidx=randvar(type=gamma,min=0,gamma=100)

define fileset name=shared,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=60

define flowop name=rewrite,$set
{
  flowop openfile name=open-old,filesetname=$set,indexed=$fileidx,fd=1
  flowop readwholefile name=read-old,iosize=$rdiosize,fd=1
  flowop createfile name=create-new,filesetname=$set,indexed=$fileidx,fd=2
  flowop writewholefile name=write-new,fd=2,iosize=$wrtiosize,srcfd=1
  flowop closefile name=close-old,fd=1
  flowop closefile name=close-new,fd=2
  flowop deletefile name=delete-old,fd=1
}
define flowop name=launch,$set
{
  flowop openfile name=open-1,filesetname=$set,indexed=$fileidx,fd=3
  flowop readwholefile name=read-1,iosize=$rdiosize,fd=3
  flowop openfile name=open-2,filesetname=$set,indexed=$fileidx,fd=4
  flowop readwholefile name=read-2,iosize=$rdiosize,fd=4
  flowop closefile name=close-1,fd=3
  flowop openfile name=open-3,filesetname=$set,indexed=$fileidx,fd=5
  flowop readwholefile name=read-3,iosize=$rdiosize,fd=5
  flowop closefile name=close-2,fd=4
  flowop closefile name=close-3,fd=5
}
define flowop name=extend,$set
{
  flowop openfile name=open-file,filesetname=$set,indexed=$fileidx,fd=6
  flowop appendfilerand name=append-file,iosize=$wrtiosize,fd=6
  flowop closefile name=close-file,fd=6
}
define process name=client
{
  thread name=user,memsize=10m,instances=$nthreads
  {
    flowop launch name=launch-program,$set=shared
    flowop rewrite name=rewrite-file,iters=6,$set=shared
    flowop extend name=extend-file,iters=3,$set=shared
    flowop statfile name=stat-file,filesetname=shared,indexed=$fileidx
    flowop eventlimit name=limit-passes
  }
}
run $runtime
